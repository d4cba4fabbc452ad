#include "exec/run_locks.h"

#include <algorithm>

#include "tensor/mirrors.h"

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
      if (variables.uses[i].write) prepare_write(state(i));
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
}

void RunLocks::written() {
  for (int i : variables_.lock_order) {
    if (variables_.uses[i].write) state(i).torn = false;
  }
  for (int m : variables_.mirrors) {
    const VariableUse& use = variables_.uses[m];
    const VariableUse& home = variables_.uses[use.home];
    // A home that was also written alone has what its mirror has not.
    if (use.write && home.write && use.writes >= home.writes) {
      mark_fresh(state(m));
    }
  }
}

void RunLocks::lock() {
  for (int i : variables_.lock_order) {
    exclusive(i) ? state(i).mutex.lock() : state(i).mutex.lock_shared();
  }
}

void RunLocks::unlock() {
  for (int i : variables_.lock_order) {
    exclusive(i) ? state(i).mutex.unlock() : state(i).mutex.unlock_shared();
  }
}

}  // namespace berth
