#include "device/device_manager.h"

#include <fmt/format.h>

#include <mutex>

#include "berth/errors.h"

namespace berth {

std::atomic<DeviceManager*> DeviceManager::instance_{nullptr};

namespace {

std::mutex& setup_mutex() {
  static std::mutex m;
  return m;
}

// What configure() has changed so far, applied over the environment.
std::vector<std::function<void(RuntimeConfig&)>>& changes() {
  static std::vector<std::function<void(RuntimeConfig&)>> c;
  return c;
}

RuntimeConfig configured() {
  RuntimeConfig config = runtime_config_from_environment();
  for (const auto& change : changes()) change(config);
  return config;
}

}  // namespace

void DeviceManager::configure(
    const char* what, Site site,
    const std::function<void(RuntimeConfig&)>& change) {
  std::lock_guard lock(setup_mutex());
  if (instance_.load()) {
    throw errors::FailedPrecondition(fmt::format(
        "{} ({}:{}) came after the devices were created; expected before the "
        "first tensor, variable or device query: move it to the start of main",
        what, site.file ? site.file : "?", site.line));
  }
  changes().push_back(change);
}

RuntimeConfig DeviceManager::planned_config() {
  std::lock_guard lock(setup_mutex());
  if (DeviceManager* m = instance_.load()) return m->config_;
  return configured();
}

DeviceManager& DeviceManager::create() {
  std::lock_guard lock(setup_mutex());
  if (DeviceManager* m = instance_.load()) return *m;
  std::unique_ptr<DeviceManager> m(new DeviceManager);
  m->config_ = configured();
  register_all_backends(m->backends_);
  for (const auto& backend : m->backends_.backends()) {
    for (auto& d : backend->create_devices(m->config_)) m->add(std::move(d));
  }
  if (m->host_ == nullptr) {
    throw errors::Internal("no backend provides /CPU:0");
  }
  if (m->default_ == nullptr) m->default_ = m->host_;
  instance_.store(m.get(), std::memory_order_release);
  return *m.release();
}

void DeviceManager::add(std::unique_ptr<Device> device) {
  if (devices_.size() == kMaxDevices) {
    throw errors::InvalidArgument(
        fmt::format("more than {} devices asked for", kMaxDevices));
  }
  device->slot_ = static_cast<int>(devices_.size());
  if (device->type() == "CPU" && *device->name().id == 0) {
    host_ = device.get();
  }
  if (device->type() == "GPU" &&
      (!default_ || *device->name().id < *default_->name().id)) {
    default_ = device.get();
  }
  devices_.push_back(device.get());
  owned_.push_back(std::move(device));
}

Device* DeviceManager::find(const DeviceName& name) const {
  if (name.matches(default_->name())) return default_;
  for (Device* d : devices_) {
    if (name.matches(d->name())) return d;
  }
  return nullptr;
}

Device& DeviceManager::lookup(const DeviceName& name) const {
  if (Device* d = find(name)) return *d;
  throw errors::InvalidArgument(fmt::format(
      "no device matches '{}'; expected one of {}", name.str(), list()));
}

std::string DeviceManager::list() const {
  std::string s;
  for (const Device* d : devices_) {
    if (!s.empty()) s += ", ";
    s += d->short_name();
    if (d->simulated()) s += " (simulated)";
  }
  return s;
}

}  // namespace berth
