#include "device/virtual_clock.h"

#include "device/device_manager.h"

namespace berth {

bool on_virtual_clock(std::string_view full_name) {
  if (!DeviceManager::initialised()) return false;
  const DeviceManager& m = DeviceManager::get();
  if (m.config().sim_real_clock) return false;
  for (const Device* d : m.devices()) {
    if (d->str() == full_name) return d->simulated();
  }
  return false;
}

}  // namespace berth
