#include "exec/run_locks.h"

#include <algorithm>

#include "tensor/mirrors.h"
#include "tensor/shards.h"

namespace berth {

RunLocks::RunLocks(const PlanVariables& variables) : variables_(variables) {
  lock();
  const auto& mirrors = variables.mirrors;
  if (std::any_of(mirrors.begin(), mirrors.end(),
                  [&](int m) { return stale(m); })) {
    // Rare: whether they still are is asked again under the stronger locks.
    unlock();
    refreshes_ = true;
    lock();
  }
  try {
    for (size_t m = 0; refreshes_ && m < mirrors.size(); ++m) {
      if (stale(mirrors[m])) refresh_mirror(state(mirrors[m]));
    }
    for (int i : variables.lock_order) {
      if (variables.uses[i].read) check_not_torn(state(i));
    }
    for (int i : variables.lock_order) {
      if (!variables.uses[i].write) continue;
      prepare_write(state(i));
      mark_written(state(i));
    }
  } catch (...) {
    unlock();
    throw;
  }
}

// Mirrors that the plan overwrites need nothing.
bool RunLocks::stale(int mirror) const {
  return variables_.uses[mirror].read && is_stale(state(mirror));
}

void RunLocks::tear(const char* why) {
  for (int i : variables_.lock_order) {
    if (variables_.uses[i].write) mark_torn(state(i), why);
  }
  for (int m : variables_.mirrors) {
    const VariableUse& use = variables_.uses[m];
    if (use.write && is_shard(state(m))) mark_torn(state(use.home), why);
  }
}

void RunLocks::written() {
  for (int i : variables_.lock_order) {
    if (variables_.uses[i].write) state(i).torn = false;
  }
  for (int m : variables_.mirrors) {
    const VariableUse& use = variables_.uses[m];
    const VariableUse& home = variables_.uses[use.home];
    if (is_shard(state(m))) continue;
    // A home that was also written alone has what its mirror has not.
    if (use.write && home.write && use.writes >= home.writes) {
      mark_fresh(state(m));
    }
  }
}

// Homes that the plan reads have what their shards have.
void RunLocks::lock() {
  const auto behind = [&](int i) {
    return variables_.uses[i].read && state(i).behind && !state(i).torn;
  };
  const std::vector<int>& all = variables_.lock_order;
  for (bool again = true; again;) {
    for (int i : all) {
      if (behind(i)) catch_up(state(i));
    }
    for (int i : all) {
      exclusive(i) ? state(i).mutex.lock() : state(i).mutex.lock_shared();
    }
    again = std::any_of(all.begin(), all.end(), behind);
    if (again) unlock();
  }
}

void RunLocks::unlock() {
  for (int i : variables_.lock_order) {
    exclusive(i) ? state(i).mutex.unlock() : state(i).mutex.unlock_shared();
  }
}

}  // namespace berth
