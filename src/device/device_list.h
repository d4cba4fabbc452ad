// What a device list such as "CPUx2,GPUx2" makes of a configuration
// (config::set_device_list, BERTH_DEVICES).

#ifndef BERTH_DEVICE_DEVICE_LIST_H_
#define BERTH_DEVICE_DEVICE_LIST_H_

#include <functional>
#include <string>

#include "device/runtime_config.h"

namespace berth {

// Checks the list against the machine and `would`, the configuration without
// it. Throws errors::InvalidArgument that begins with `what`.
std::function<void(RuntimeConfig&)> device_list_change(
    const char* what, const std::string& device_list, RuntimeConfig would);

}  // namespace berth

#endif  // BERTH_DEVICE_DEVICE_LIST_H_
