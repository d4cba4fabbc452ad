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
#include <string_view>
#include <vector>

#include "berth/site.h"
#include "device/backend_registry.h"
#include "device/device.h"

namespace berth {

class DeviceManager {
 public:
  // Returns the manager; creates the devices on the first call. Throws what
  // the environment or a backend refuses; the next call tries again.
  static DeviceManager& get() { return get("", {}); }
  // `what` and `site` are the user's call, which errors about late
  // configuration name.
  static DeviceManager& get(std::string_view what, Site site) {
    DeviceManager* m = instance_.load(std::memory_order_acquire);
    return m ? *m : create(what, site);
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
  // Devices in order of preference: GPUs, CPUs, others, each by number; and the
  // names in that order (DeviceSet::SortPrioritizedDeviceVector, which sorts
  // GPU:10 before GPU:2).
  const std::vector<Device*>& by_preference() const { return preferred_; }
  const std::vector<const DeviceName*>& names_by_preference() const {
    return preferred_names_;
  }
  // The place of a device in these lists.
  int position_of(const Device& device) const {
    return position_[static_cast<size_t>(device.slot())];
  }
  Device& host() const { return *host_; }  // /CPU:0
  // Where an op goes when nobody asked: the first GPU, else /CPU:0.
  Device& default_device() const { return *default_; }
  // Host memory that devices copy from without staging, as blocks of /CPU:0;
  // null when no device wants any. Ask it for what a device will read, with
  // try_allocate(): what it has is limited.
  Allocator* pinned_pool() const { return pinned_.get(); }

  // Returns the first device, in order of preference, that `name` matches
  // (parts left open match any). Null when there is none.
  Device* find(const DeviceName& name) const;
  // Finds it, or throws errors::InvalidArgument listing the devices.
  Device& lookup(const DeviceName& name) const;
  std::string list() const;  // "CPU:0, GPU:0 (simulated)"

  // Adds devices of other tasks, after all others: nothing goes there
  // unless it is asked for. Nobody else may use the manager meanwhile.
  void add_remote(std::vector<std::unique_ptr<Device>> devices);

  const RuntimeConfig& config() const { return config_; }
  const BackendRegistry& backends() const { return backends_; }

 private:
  DeviceManager() = default;
  static DeviceManager& create(std::string_view what, Site site);
  void create_devices();
  void add(std::unique_ptr<Device> device);
  void order();  // once all are there
  void find_pinned_memory();

  static std::atomic<DeviceManager*> instance_;
  RuntimeConfig config_;
  std::string created_by_;  // "constant() at model.cc:41"
  BackendRegistry backends_;
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<Device*> devices_, preferred_;
  std::vector<const DeviceName*> preferred_names_;
  std::vector<int> position_;  // by slot
  Device* host_ = nullptr;
  Device* default_ = nullptr;
  std::unique_ptr<Allocator> pinned_;
};

}  // namespace berth

#endif  // BERTH_DEVICE_DEVICE_MANAGER_H_
