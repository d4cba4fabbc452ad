// parse_among: reads a device name that is meant for devices other than those
// of this process, which errors would list. Pure.

#ifndef BERTH_DEVICE_PARSE_AMONG_H_
#define BERTH_DEVICE_PARSE_AMONG_H_

#include <string_view>

#include "device/device_name.h"

namespace berth {

// As DeviceName::parse(); errors say that there are `devices`, in words.
DeviceName parse_among(std::string_view text, std::string_view devices);

}  // namespace berth

#endif  // BERTH_DEVICE_PARSE_AMONG_H_
