#include "data/host_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes_text.h"
#include "berth/config.h"
#include "device/engine_thread.h"

namespace berth::data {

namespace {

std::atomic<int> g_cores_used{0};
std::atomic<bool> g_core_wanted{false};
std::atomic<size_t> g_bytes_used{0};

}  // namespace

CoreClaim::CoreClaim(int told) : held_(std::max(1, told)) {
  g_cores_used += held_;
}

CoreClaim::~CoreClaim() {
  g_cores_used -= held_;
  g_core_wanted = false;
}

int CoreClaim::available() { return std::max(1, host_cores().size()); }
int CoreClaim::in_use() { return g_cores_used; }
bool CoreClaim::wanted() { return g_core_wanted; }

bool CoreClaim::grow() {
  const int most = available();
  int used = g_cores_used;
  while (used < most) {
    if (g_cores_used.compare_exchange_weak(used, used + 1)) {
      ++held_;
      return true;
    }
  }
  g_core_wanted = true;
  return false;
}

void CoreClaim::shrink() {
  --held_;
  --g_cores_used;
  g_core_wanted = false;
}

void ByteClaim::set(size_t bytes) {
  g_bytes_used += bytes - held_;  // modulo 2^64
  held_ = bytes;
}

bool ByteClaim::try_set(size_t bytes) {
  const size_t budget = config::get_host_memory_budget();
  size_t used = g_bytes_used;
  do {
    if (bytes > held_ && used + (bytes - held_) > budget) return false;
  } while (!g_bytes_used.compare_exchange_weak(used, used + bytes - held_));
  held_ = bytes;
  return true;
}

size_t ByteClaim::in_use() { return g_bytes_used; }

std::string bytes_text(size_t bytes) {
  return berth::bytes_text(static_cast<int64_t>(bytes));
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} us", seconds * 1e6);
}

std::string stats_text(const StageStats& stats) {
  std::string text = fmt::format(", {} elements", stats.elements.load());
  if (const int64_t n = stats.timed; n > 0) {
    text += fmt::format(", {} in the function",
                        time_text(static_cast<double>(stats.timed_ns.load()) /
                                  static_cast<double>(n) * 1e-9));
  }
  text +=
      fmt::format(", the reader waited {} times, {}", stats.waits.load(),
                  time_text(static_cast<double>(stats.wait_ns.load()) * 1e-9));
  return text;
}

}  // namespace berth::data
