#include "berth/config.h"

#include <fmt/format.h>

#include <atomic>

#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth::config {

std::vector<LogicalDevice> list_logical_devices(
    const std::string& device_type) {
  std::vector<LogicalDevice> list;
  for (const Device* d : DeviceManager::get().devices()) {
    if (!device_type.empty() && d->type() != device_type) continue;
    list.push_back({d->str(), d->type(), d->description(), d->simulated()});
  }
  return list;
}

void set_simulated_devices(const std::string& device_list, Site site) {
  int gpus = 0;
  for (const DeviceListEntry& e : parse_device_list(device_list)) {
    if (e.type != "GPU" || !e.cores.empty()) {
      throw errors::InvalidArgument(
          fmt::format("set_simulated_devices: '{}' asks for {}; only "
                      "accelerators can be simulated, expected for example "
                      "'GPUx2'",
                      device_list, e.type));
    }
    gpus += e.count;
  }
  DeviceManager::configure(
      "config::set_simulated_devices", site,
      [gpus](RuntimeConfig& c) { c.simulated_gpus = gpus; });
}

void set_intra_op_parallelism_threads(int threads, Site site) {
  if (threads < 0 || threads > 32) {
    throw errors::InvalidArgument(
        fmt::format("set_intra_op_parallelism_threads: {} threads asked for; "
                    "expected 0 (one per core) to 32",
                    threads));
  }
  DeviceManager::configure(
      "config::set_intra_op_parallelism_threads", site,
      [threads](RuntimeConfig& c) { c.cpu_workers = threads; });
}

namespace {
std::atomic<SoftPlacement> soft_placement{SoftPlacement::kWarn};
}  // namespace

void set_soft_device_placement(SoftPlacement policy) {
  soft_placement.store(policy);
}
void set_soft_device_placement(bool enabled) {
  set_soft_device_placement(enabled ? SoftPlacement::kWarn
                                    : SoftPlacement::kError);
}
SoftPlacement soft_device_placement() { return soft_placement.load(); }
bool get_soft_device_placement() {
  return soft_device_placement() != SoftPlacement::kError;
}

DeviceMemoryInfo get_memory_info(const std::string& device) {
  const MemoryInfo i =
      DeviceManager::get().lookup(DeviceName::parse(device)).allocator().info();
  return {i.current_bytes, i.peak_bytes, i.reserved_bytes, i.limit_bytes};
}

void reset_device_error(const std::string& device) {
  DeviceManager::get().lookup(DeviceName::parse(device)).reset_error();
}

void reset_memory_stats(const std::string& device) {
  DeviceManager::get()
      .lookup(DeviceName::parse(device))
      .allocator()
      .reset_peak();
}

}  // namespace berth::config
