#include "base/live_counts.h"

#include <mutex>

#include "base/immortal.h"

namespace berth::live_counts {

namespace {

struct GuardedCounts {
  std::mutex mutex;
  Counts counts;
};

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

Counts read() {
  GuardedCounts& all = guarded_counts();
  std::lock_guard lock(all.mutex);
  return all.counts;
}

}  // namespace berth::live_counts
