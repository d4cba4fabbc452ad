// Device lists of strategies: names become devices of this process. Thread-
// safe.

#ifndef BERTH_DISTRIBUTE_DEVICE_LIST_H_
#define BERTH_DISTRIBUTE_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "berth/site.h"
#include "device/device.h"

namespace berth::distribute {

// Returns the devices of these names, in order: "/GPU:0", "GPU:0",
// "/physical_device:GPU:0" or a full name. No names: all GPUs, else all CPU
// devices. Throws errors::InvalidArgument for a name that no device has, a
// device that comes twice, a physical device that is hidden or cut in several;
// `what` and `site` are the user's call.
std::vector<Device*> devices_named(const std::vector<std::string>& names,
                                   const std::string& what, Site site);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DEVICE_LIST_H_
