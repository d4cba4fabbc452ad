// VariableLocks: the locks of the variables that one op call touches.
//
// Exclusive for variables the op writes, shared for those it reads and for
// borrowed snapshots among its inputs; taken in one global order, so that
// concurrent calls cannot deadlock. Lives on the caller's stack.

#ifndef BERTH_EAGER_VARIABLE_LOCKS_H_
#define BERTH_EAGER_VARIABLE_LOCKS_H_

#include <span>
#include <vector>

#include "op/op_def.h"
#include "tensor/variable_state.h"

namespace berth {

class VariableLocks {
 public:
  // Locks, checks that variables which are read are not torn, and moves live
  // snapshots of written ones out. Throws errors::FailedPrecondition.
  VariableLocks(const OpDef& op, std::span<const Tensor* const> in);
  ~VariableLocks() { unlock(); }
  VariableLocks(const VariableLocks&) = delete;
  VariableLocks& operator=(const VariableLocks&) = delete;

  // Runs `body`; when it throws, written variables become torn.
  template <class Fn>
  void run(Fn&& body) {
    if (entries_.empty()) return body();
    try {
      body();
    } catch (const std::exception& e) {
      tear(e.what());
      throw;
    }
    written([](VariableState& v) { v.torn = false; });
  }

  template <class Fn>
  void written(Fn&& fn) {
    for (const Entry& e : entries_) {
      if (e.write) fn(*e.state);
    }
  }

 private:
  struct Entry {
    VariableState* state;
    bool write;
    bool needs_value;  // torn ones are refused
  };
  void lock();
  void unlock();
  void tear(const char* why);
  std::vector<Entry> entries_;
  const OpDef& op_;
};

}  // namespace berth

#endif  // BERTH_EAGER_VARIABLE_LOCKS_H_
