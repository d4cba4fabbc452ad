// DeviceManager: the devices of this process.
//
// Created at the first device query, from what berth::config set before, and
// never destroyed, so that tensors in static storage can be freed at any time.
// Thread-safe.

#ifndef BERTH_DEVICE_DEVICE_MANAGER_H_
#define BERTH_DEVICE_DEVICE_MANAGER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/site.h"
#include "device/backend_registry.h"
#include "device/device.h"

namespace berth {

class DeviceManager {
 public:
  // Returns the manager; creates the devices on the first call. Throws what
  // the environment or a backend refuses; the next call tries again.
  static DeviceManager& get() {
    DeviceManager* m = instance_.load(std::memory_order_acquire);
    return m ? *m : create();
  }
  static bool initialised() { return instance_.load() != nullptr; }

  // Changes the configuration. Throws errors::FailedPrecondition naming
  // `what`, `site` and the call that created the devices when they exist.
  static void configure(const char* what, Site site,
                        const std::function<void(RuntimeConfig&)>& change);

  // Returns the configuration that the devices have, or would have if they
  // were created now. Creates none.
  static RuntimeConfig planned_config();

  const std::vector<Device*>& devices() const { return devices_; }
  Device& host() const { return *host_; }  // /CPU:0
  // Where an op goes when nobody asked: the first GPU, else /CPU:0.
  Device& default_device() const { return *default_; }

  // Returns the first device that `name` matches (parts left open match any;
  // no type: the default device first). Null when there is none.
  Device* find(const DeviceName& name) const;
  // The same; throws errors::InvalidArgument listing the devices.
  Device& lookup(const DeviceName& name) const;
  std::string list() const;  // "CPU:0, GPU:0 (simulated)"

  const RuntimeConfig& config() const { return config_; }

 private:
  DeviceManager() = default;
  static DeviceManager& create();
  void add(std::unique_ptr<Device> device);

  static std::atomic<DeviceManager*> instance_;
  RuntimeConfig config_;
  BackendRegistry backends_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_;
  Device* host_ = nullptr;
  Device* default_ = nullptr;
};

}  // namespace berth

#endif  // BERTH_DEVICE_DEVICE_MANAGER_H_
