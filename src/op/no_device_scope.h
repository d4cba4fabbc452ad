// NoDeviceScope: closes the caller's device scopes until the end of the block.

#ifndef BERTH_OP_NO_DEVICE_SCOPE_H_
#define BERTH_OP_NO_DEVICE_SCOPE_H_

#include <utility>

#include "op/dispatcher.h"

namespace berth {

class NoDeviceScope {
 public:
  NoDeviceScope()
      : scope_(std::exchange(t_state.scope, nullptr)),
        device_(std::exchange(t_state.scope_device, nullptr)) {}
  ~NoDeviceScope() {
    t_state.scope = scope_;
    t_state.scope_device = device_;
  }
  NoDeviceScope(const NoDeviceScope&) = delete;
  NoDeviceScope& operator=(const NoDeviceScope&) = delete;

 private:
  const DeviceScope* const scope_;
  Device* const device_;
};

}  // namespace berth

#endif  // BERTH_OP_NO_DEVICE_SCOPE_H_
