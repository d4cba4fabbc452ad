// RunLocks: the locks of the variables of one run of a plan.
//
// Exclusive for variables that the plan writes, shared for others; taken in
// one global order, so that concurrent runs cannot deadlock. Brings mirrors
// that the plan reads up to date. Lives on the caller's stack.

#ifndef BERTH_EXEC_RUN_LOCKS_H_
#define BERTH_EXEC_RUN_LOCKS_H_

#include <vector>

#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

struct VariableUse {
  Tensor handle;
  bool read = false, write = false, overwrite_first = false;
  int home = -1;   // of a mirror: the use of what it mirrors
  int writes = 0;  // one per op
};

// The variables of a plan.
struct PlanVariables {
  std::vector<VariableUse> uses;    // by index of a PlanBuffer
  std::vector<VariableHold> holds;  // on their addresses
  std::vector<int> lock_order;      // of uses: by serial
  std::vector<int> mirrors;         // of uses: those that are mirrors
};

class RunLocks {
 public:
  // Locks, refreshes mirrors, checks that what is read is not torn, prepares
  // what is written. Throws errors::FailedPrecondition (torn) and
  // errors::ResourceExhausted.
  explicit RunLocks(const PlanVariables& variables);
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
    return *variables_.uses[i].handle.impl()->variable;
  }
  bool exclusive(int i) const {
    const VariableUse& use = variables_.uses[i];
    return use.write || (refreshes_ && use.home >= 0);
  }
  bool stale(int mirror) const;
  void lock();
  void unlock();

  const PlanVariables& variables_;
  bool refreshes_ = false;
};

}  // namespace berth

#endif  // BERTH_EXEC_RUN_LOCKS_H_
