// config: devices, threads and policies of the process.

#include "berth/config.h"

#include <fmt/format.h>

#include <atomic>

#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth::config {

namespace {
constexpr int kMostThreads = 32;
}  // namespace

void raise_no_device(size_t index, size_t count) {
  throw errors::OutOfRange(fmt::format(
      "device {} of a list of {} was asked for; expected {}; test size(), or "
      "simulate GPUs: BERTH_SIM=GPUx2",
      index, count,
      count == 0 ? "no index: there is no such device"
                 : fmt::format("an index below {}", count)));
}

DeviceList<LogicalDevice> list_logical_devices(const std::string& device_type,
                                               Site site) {
  DeviceList<LogicalDevice> list;
  const DeviceManager& m =
      DeviceManager::get("config::list_logical_devices()", site);
  for (const Device* d : m.devices()) {
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

namespace {
void check_threads(const char* what, int threads) {
  if (threads >= 0 && threads <= kMostThreads) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} threads asked for; expected 0 (one per core) to {}",
                  what, threads, kMostThreads));
}
}  // namespace

void set_intra_op_parallelism_threads(int threads, Site site) {
  const char* what = "config::set_intra_op_parallelism_threads";
  check_threads(what, threads);
  if (threads == get_intra_op_parallelism_threads()) return;
  DeviceManager::configure(
      what, site, [threads](RuntimeConfig& c) { c.cpu_workers = threads; });
}
int get_intra_op_parallelism_threads() {
  return DeviceManager::planned_config().cpu_workers;
}

void set_inter_op_parallelism_threads(int threads, Site site) {
  const char* what = "config::set_inter_op_parallelism_threads";
  check_threads(what, threads);
  if (threads == get_inter_op_parallelism_threads()) return;
  DeviceManager::configure(what, site, [threads](RuntimeConfig& c) {
    c.inter_op_threads = threads;
  });
}
int get_inter_op_parallelism_threads() {
  return DeviceManager::planned_config().inter_op_threads;
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

namespace {

constexpr const char* kPolicyNames[] = {"silent", "silent_for_int32", "warn",
                                        "explicit"};

std::atomic<DevicePolicy> g_device_policy{DevicePolicy::kSilent};

}  // namespace

void set_device_policy(DevicePolicy policy) { g_device_policy.store(policy); }

void set_device_policy(const std::string& name) {
  for (int i = 0; i < 4; ++i) {
    if (name == kPolicyNames[i]) {
      return set_device_policy(static_cast<DevicePolicy>(i));
    }
  }
  throw errors::InvalidArgument(
      fmt::format("config::set_device_policy: '{}'; expected silent, "
                  "silent_for_int32, warn or explicit",
                  name));
}

DevicePolicy device_policy() { return g_device_policy.load(); }

std::string get_device_policy() {
  return kPolicyNames[static_cast<int>(device_policy())];
}

void reset_device_error(const std::string& device) {
  DeviceManager::get().lookup(DeviceName::parse(device)).reset_error();
}

}  // namespace berth::config
