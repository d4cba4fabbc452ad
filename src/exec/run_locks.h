// RunLocks: the locks of the variables of one run of a plan.
//
// Exclusive for variables that the plan writes, shared for others; taken in
// one global order, so that concurrent runs cannot deadlock. Brings mirrors
// that the plan reads up to date. Lives on the caller's stack.

#ifndef BERTH_EXEC_RUN_LOCKS_H_
#define BERTH_EXEC_RUN_LOCKS_H_

#include "exec/plan_impl.h"

namespace berth {

class RunLocks {
 public:
  // Locks, refreshes mirrors, checks that what is read is not torn, prepares
  // what is written. Throws errors::FailedPrecondition (torn) and
  // errors::ResourceExhausted.
  explicit RunLocks(const Plan::Impl& plan);
  ~RunLocks() { unlock(); }
  RunLocks(const RunLocks&) = delete;
  RunLocks& operator=(const RunLocks&) = delete;

  // The run failed: what it writes is torn.
  void tear(const char* why);
  // The run was launched: what it writes is whole again, and mirrors are as
  // their homes.
  void written();

 private:
  VariableState& state(int i) const {
    return *plan_.variables[i].handle.impl()->variable;
  }
  bool exclusive(int i) const {
    const Plan::Impl::VariableUse& use = plan_.variables[i];
    return use.write || (refreshes_ && use.home >= 0);
  }
  bool stale(int mirror) const;
  void lock();
  void unlock();

  const Plan::Impl& plan_;
  bool refreshes_ = false;
};

}  // namespace berth

#endif  // BERTH_EXEC_RUN_LOCKS_H_
