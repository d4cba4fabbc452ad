#include "base/live_counts.h"

#include <mutex>

#include "base/immortal.h"

namespace berth::live_counts {

namespace {

struct GuardedCounts {
  std::mutex mutex;
  Counts counts;
  ClusterState cluster;
};

std::atomic<int64_t> g_sent{0}, g_received{0};

GuardedCounts& guarded_counts() {
  static GuardedCounts& all = immortal<GuardedCounts>();
  return all;
}

}  // namespace

void add_call(const std::string& function) {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  ++all.counts.calls[function];
}

void add_input_wait(double us) {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  all.counts.input_wait_us += us;
}

void add_step(int64_t examples) {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  ++all.counts.steps;
  all.counts.examples += examples;
}

void add_peer_wait(const std::string& peer, double us) {
  if (!is_on()) return;
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  all.counts.peer_wait_us[peer] += us;
}

void add_exchange(const char* kind, int64_t bytes, double us) {
  if (!is_on()) return;
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  Counts::Exchanges& e = all.counts.exchanges[kind];
  ++e.count;
  e.bytes += bytes;
  e.us += us;
}

void add_sent(int64_t bytes) {
  g_sent.fetch_add(bytes, std::memory_order_relaxed);
}

void add_received(int64_t bytes) {
  g_received.fetch_add(bytes, std::memory_order_relaxed);
}

Counts read() {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  Counts counts = all.counts;
  counts.sent_bytes = g_sent.load(std::memory_order_relaxed);
  counts.received_bytes = g_received.load(std::memory_order_relaxed);
  return counts;
}

namespace {
void (*g_when_devices_exist)() = nullptr;
}  // namespace

void when_devices_exist(void (*fn)()) { g_when_devices_exist = fn; }

void devices_exist() {
  if (g_when_devices_exist != nullptr) g_when_devices_exist();
}

void set_cluster(ClusterState state) {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  all.cluster = std::move(state);
}

ClusterState cluster() {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  return all.cluster;
}

}  // namespace berth::live_counts
