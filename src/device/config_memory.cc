// config: what is in the memory of devices.

#include "berth/config_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/bytes_text.h"
#include "base/environment.h"
#include "base/where.h"
#include "berth/config.h"
#include "device/device_manager.h"
#include "device/memory_snapshot.h"

namespace berth::config {

namespace {

// Work that waits in the device's queue holds tensors that the program has
// dropped.
Allocator& settled(Device& device) {
  finish(device.copy_stream().record());
  finish(device.compute_stream().record());
  return device.allocator();
}

Device& device_of(const std::string& device, const char* call, Site site) {
  return DeviceManager::get(call, site).lookup(DeviceName::parse(device));
}

// "\n  8 MiB MatMul (train.py:12), 2 blocks" for each of the largest.
std::string holder_lines(const std::vector<MemoryHolder>& holders) {
  constexpr size_t kMost = 20;
  std::string text;
  for (size_t i = 0; i < std::min(holders.size(), kMost); ++i) {
    const MemoryHolder& h = holders[i];
    text +=
        fmt::format("\n  {} {}{}", bytes_text(static_cast<int64_t>(h.bytes)),
                    h.name, where_text(nullptr, h.site));
    if (h.blocks > 1) text += fmt::format(", {} blocks", h.blocks);
  }
  if (holders.size() > kMost) {
    text += fmt::format("\n  {} more", holders.size() - kMost);
  }
  return text;
}

// Nothing of the engine is destroyed before.
[[gnu::destructor]] void report_leaks() {
  if (!DeviceManager::initialised() ||
      !environment_switch("BERTH_LEAK_REPORT", false)) {
    return;
  }
  std::fputs(memory_report().c_str(), stderr);
}

[[maybe_unused]] const bool g_leaks_wanted = [] {
  const bool wanted = environment("BERTH_LEAK_REPORT") == "1";
  if (wanted) berth::track_memory_peaks(true);
  return wanted;
}();

}  // namespace

DeviceMemoryInfo get_memory_info(const std::string& device, Site site) {
  const MemoryInfo i =
      settled(device_of(device, "config::get_memory_info()", site)).info();
  return {i.current_bytes, i.peak_bytes, i.reserved_bytes, i.limit_bytes};
}

void reset_memory_stats(const std::string& device) {
  settled(DeviceManager::get().lookup(DeviceName::parse(device))).reset_peak();
}

std::vector<MemoryHolder> get_memory_holders(const std::string& device,
                                             Site site) {
  return holders_of(memory_snapshot(
      settled(device_of(device, "config::get_memory_holders()", site))));
}

std::vector<MemoryHolder> get_peak_holders(const std::string& device,
                                           Site site) {
  return holders_at_peak(
      settled(device_of(device, "config::get_peak_holders()", site)));
}

void track_memory_peaks(bool on) { berth::track_memory_peaks(on); }

std::string memory_report() {
  std::string text;
  for (Device* d : DeviceManager::get().devices()) {
    Allocator& a = settled(*d);
    const MemoryInfo info = a.info();
    const auto bytes = [](size_t n) {
      return bytes_text(static_cast<int64_t>(n));
    };
    if (info.peak_bytes == 0) continue;
    text += fmt::format("{}: {} in use{}\n", d->short_name(),
                        bytes(info.current_bytes),
                        holder_lines(holders_of(memory_snapshot(a))));
    const std::vector<MemoryHolder> peak = holders_at_peak(a);
    if (peak.empty()) continue;
    text += fmt::format("{}: {} at most{}\n", d->short_name(),
                        bytes(info.peak_bytes), holder_lines(peak));
  }
  return text;
}

void write_memory_snapshot(const std::string& device, const std::string& path,
                           Site site) {
  Device& d = device_of(device, "config::write_memory_snapshot()", site);
  write_snapshot(memory_snapshot(settled(d)), d, 0, path);
}

void set_memory_snapshot(const std::string& path) { snapshot_path(path); }

}  // namespace berth::config
