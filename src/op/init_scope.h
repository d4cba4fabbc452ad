// Leaves the trace, the tape and the replica of the calling thread for a block
// (tf.init_scope): ops run at once, and variables live on. In a replica they
// are those of its strategy. Blocks of one thread close in reverse order.

#ifndef BERTH_OP_INIT_SCOPE_H_
#define BERTH_OP_INIT_SCOPE_H_

#include "op/replica_scope.h"

namespace berth {

class InitScope {
 public:
  InitScope() : saved_(t_state) {
    t_state.top = nullptr;
    t_state.tracers = 0;
    t_state.follows = -1;
    if (t_state.replica == nullptr) return;
    t_state.strategy = &t_state.replica->strategy();
    t_state.replica = nullptr;
    t_state.scope = nullptr;
    t_state.scope_device = nullptr;
  }
  ~InitScope() { t_state = saved_; }
  InitScope(const InitScope&) = delete;
  InitScope& operator=(const InitScope&) = delete;

 private:
  const ThreadState saved_;
};

}  // namespace berth

#endif  // BERTH_OP_INIT_SCOPE_H_
