// Device lists of strategies: names become devices. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_DEVICE_LIST_H_
#define BERTH_DISTRIBUTE_STRATEGY_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "berth/site.h"
#include "device/device.h"

namespace berth::distribute {

// Returns the devices with these names, in order: "/GPU:0", "GPU:0",
// "/physical_device:GPU:0" or a full name. Without names: all GPUs, or all CPU
// devices if there is no GPU. Throws errors::InvalidArgument for an unknown
// name, a device listed twice, or a physical device that is hidden or split
// into several logical ones; `what` and `site` are the user's call.
std::vector<Device*> devices_named(const std::vector<std::string>& names,
                                   const std::string& what, Site site);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_DEVICE_LIST_H_
