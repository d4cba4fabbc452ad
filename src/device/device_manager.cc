#include "device/device_manager.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "base/environment.h"
#include "base/immortal.h"
#include "base/live_counts.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_list.h"
#include "device/opening.h"

namespace berth {

std::atomic<DeviceManager*> DeviceManager::instance_{nullptr};

namespace {

std::mutex& setup_mutex() {
  static std::mutex m;
  return m;
}

// What configure() has changed so far, applied over the environment.
std::vector<std::function<void(RuntimeConfig&)>>& changes() {
  static auto& c = immortal<std::vector<std::function<void(RuntimeConfig&)>>>();
  return c;
}

// "constant() at model.cc:41", what is known of it.
std::string first_use_text(std::string_view what, Site site) {
  const std::string place = site_text(site);
  if (what.empty()) return place.empty() ? "an earlier call" : place;
  return std::string(what) + (place.empty() ? "" : " at " + place);
}

int rank_of_type(const Device& d) {
  return d.type() == "GPU" ? 0 : d.type() == "CPU" ? 1 : 2;
}

bool preferred(const Device* a, const Device* b) {
  return std::pair(rank_of_type(*a), *a->name().id) <
         std::pair(rank_of_type(*b), *b->name().id);
}

RuntimeConfig configured() {
  RuntimeConfig config = runtime_config_from_environment();
  if (const std::string list = environment("BERTH_DEVICES"); !list.empty()) {
    // Once: finding GPUs opens drivers. Guarded by setup_mutex().
    static const auto& change = immortal<std::function<void(RuntimeConfig&)>>(
        device_list_change("environment variable BERTH_DEVICES", list, config));
    change(config);
  }
  for (const auto& change : changes()) change(config);
  return config;
}

}  // namespace

void DeviceManager::configure(
    const char* what, Site site,
    const std::function<void(RuntimeConfig&)>& change) {
  std::lock_guard lock(setup_mutex());
  if (const DeviceManager* m = instance_.load()) {
    throw errors::FailedPrecondition(fmt::format(
        "{} came too late: the devices were created by {}; expected before the "
        "first tensor, variable or device query: move it to the start of main",
        first_use_text(what, site), m->created_by_));
  }
  changes().push_back(change);
}

RuntimeConfig DeviceManager::planned_config() {
  std::lock_guard lock(setup_mutex());
  if (DeviceManager* m = instance_.load()) return m->config_;
  return configured();
}

DeviceManager& DeviceManager::create(std::string_view what, Site site) {
  std::lock_guard lock(setup_mutex());
  if (DeviceManager* m = instance_.load()) return *m;
  std::unique_ptr<DeviceManager> m(new DeviceManager);
  m->config_ = configured();
  const Opening opening;  // drivers, too
  m->backends_ = find_backends();
  m->create_devices();
  if (m->host_ == nullptr) {
    throw errors::Internal("no backend provides /CPU:0");
  }
  m->created_by_ = first_use_text(what, site);
  m->order();
  m->find_pinned_memory();
  instance_.store(m.get(), std::memory_order_release);
  live_counts::devices_exist();
  return *m.release();
}

void DeviceManager::create_devices() {
  std::vector<int> gpus;  // by backend
  for (const auto& backend : backends_.backends()) {
    const auto found = backend->find_devices(config_);
    gpus.push_back(static_cast<int>(
        std::count_if(found.begin(), found.end(),
                      [](const FoundDevice& d) { return d.type == "GPU"; })));
  }
  const auto parts =
      lay_out_gpus(config_, std::accumulate(gpus.begin(), gpus.end(), 0));
  int first = 0;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto own = gpu_parts_of(parts, first, gpus[i]);
    for (auto& d : backends_.backends()[i]->create_devices(config_, own)) {
      add(std::move(d));
    }
    first += gpus[i];
  }
}

void DeviceManager::add(std::unique_ptr<Device> device) {
  if (devices_.size() == kMaxDevices) {
    throw errors::InvalidArgument(
        fmt::format("more than {} devices asked for; expected at most {} of "
                    "all types together: ask for fewer",
                    kMaxDevices, kMaxDevices));
  }
  device->slot_ = static_cast<int>(devices_.size());
  if (host_ == nullptr && device->type() == "CPU" && *device->name().id == 0) {
    host_ = device.get();
  }
  devices_.push_back(device.get());
  owned_.push_back(std::move(device));
}

void DeviceManager::order() {
  preferred_ = devices_;
  std::stable_sort(preferred_.begin(), preferred_.end(), &preferred);
  default_ = preferred_.front();
  // Iterators over the lists stay valid while devices of other tasks are added.
  for (auto* list : {&devices_, &preferred_}) list->reserve(kMaxDevices);
  preferred_names_.reserve(kMaxDevices);
  position_.resize(kMaxDevices);
  for (size_t i = 0; i < preferred_.size(); ++i) {
    preferred_names_.push_back(&preferred_[i]->name());
    position_[static_cast<size_t>(preferred_[i]->slot())] = static_cast<int>(i);
  }
}

void DeviceManager::add_remote(std::vector<std::unique_ptr<Device>> devices) {
  std::lock_guard lock(setup_mutex());
  std::stable_sort(
      devices.begin(), devices.end(),
      [](const auto& a, const auto& b) { return preferred(a.get(), b.get()); });
  for (auto& device : devices) {
    Device* d = device.get();
    add(std::move(device));
    position_[d->slot()] = static_cast<int>(preferred_.size());
    preferred_names_.push_back(&d->name());
    preferred_.push_back(d);
  }
}

void DeviceManager::find_pinned_memory() {
  // It cannot be paged out: the rest of the machine needs some, too.
  const size_t most = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4;
  for (Device* d : preferred_) {
    std::unique_ptr<MemorySource> source = d->pinned_memory_source();
    if (!source) continue;
    pinned_ = std::make_unique<Allocator>(host_, std::move(source), most,
                                          &pinned_memory());
    return;
  }
}

Device* DeviceManager::find(const DeviceName& name) const {
  for (Device* d : preferred_) {
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
    s += d->name().short_str();
    if (d->simulated()) s += " (simulated)";
  }
  return s;
}

}  // namespace berth
