// request_text: what a user writes to ask for a device. Pure.

#ifndef BERTH_DEVICE_REQUEST_TEXT_H_
#define BERTH_DEVICE_REQUEST_TEXT_H_

#include <string>

#include "device/device_name.h"

namespace berth {

// Returns what DeviceName::parse() reads as this device: "/GPU:0",
// "/device:NPU:0", of another task "/job:worker/task:1/device:GPU:0".
std::string request_text(const DeviceName& name);

}  // namespace berth

#endif  // BERTH_DEVICE_REQUEST_TEXT_H_
