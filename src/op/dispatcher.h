// The seam: every op call of the engine goes through apply().
//
// Public functions such as math::add build an argument list and call apply().
// With no dispatcher on the thread the call goes straight to eager execution;
// a tracer, a tape or a replica scope puts a Dispatcher on top. One gradient
// rule therefore works eagerly, inside a trace and at second order.
// Each thread has its own state; nothing here locks.

#ifndef BERTH_OP_DISPATCHER_H_
#define BERTH_OP_DISPATCHER_H_

#include <cstdint>
#include <span>

#include "berth/site.h"
#include "berth/tensor.h"

namespace berth {

class Attrs;
class Device;
class Dispatcher;
class OpDef;
class ReplicaScope;   // op/replica_scope.h
class StrategyScope;  // op/replica_scope.h
struct DeviceScope;   // op/device_scope.h

// What the calling thread is doing.
struct ThreadState {
  Dispatcher* top = nullptr;           // innermost dispatcher; null: eager
  const DeviceScope* scope = nullptr;  // innermost device scope
  Device* scope_device = nullptr;      // its resolved device, when known
  Site site = {};                      // the call being made
  const char* layer = nullptr;         // enclosing layer or function, if any
  uint32_t flags = 0;
  int32_t tracers = 0;  // on this thread, also when out of sight
  int32_t depth = 0;    // of decompositions, against endless ones
  // In a trace, the node whose device new nodes share (gradients follow their
  // forward op); -1: none.
  int32_t follows = -1;
  StrategyScope* strategy = nullptr;  // whose scope is open; null: none
  ReplicaScope* replica = nullptr;    // that is being traced; null: none
};
static_assert(sizeof(ThreadState) <= 256);

extern constinit thread_local ThreadState t_state
    __attribute__((tls_model("initial-exec")));

// Observes or replaces the execution of ops on one thread. Dispatchers form an
// intrusive list and may close in any order.
class Dispatcher {
 public:
  virtual ~Dispatcher() = default;

  // Same contract as berth::apply. To pass the call on, use next().
  virtual void apply(const OpDef& op, std::span<const Tensor* const> in,
                     const Attrs* attrs, std::span<Tensor> out) = 0;

  // The dispatcher below; null: eager.
  Dispatcher* below() const { return below_; }

 protected:
  void push();  // onto the calling thread's list
  void pop();   // from it, from wherever it is
  bool pushed() const { return pushed_; }

  // Runs the op with this dispatcher and all above it out of sight.
  void next(const OpDef& op, std::span<const Tensor* const> in,
            const Attrs* attrs, std::span<Tensor> out);

 private:
  Dispatcher* below_ = nullptr;
  bool pushed_ = false;
};

// Executes at once; defined in eager/.
void eager_apply(const OpDef& op, std::span<const Tensor* const> in,
                 const Attrs* attrs, std::span<Tensor> out);

// True when ops of the calling thread are being traced into a graph.
inline bool tracing() { return t_state.top != nullptr && t_state.tracers > 0; }

// Calls `op`.
//   in     one per input of the op, none null, all defined.
//   attrs  interned; borrowed for the call; null: all defaults.
//   out    op.num_outputs(attrs) empty slots, owned by the caller.
// Throws errors::InvalidArgument (shape, dtype, attribute), Unimplemented (no
// kernel), ResourceExhausted, FailedPrecondition; `out` is then unchanged or
// partly set.
inline void apply(const OpDef& op, std::span<const Tensor* const> in,
                  const Attrs* attrs, std::span<Tensor> out) {
  Dispatcher* top = t_state.top;
  if (top == nullptr) [[likely]] {
    eager_apply(op, in, attrs, out);
  } else {
    top->apply(op, in, attrs, out);
  }
}

// Stores the user's line for the ops that the calling function applies.
inline void set_site(Site site) { t_state.site = site; }

// Makes `top` the innermost dispatcher until the end of the block. Dispatchers
// above it are out of sight; none may be pushed or popped meanwhile.
class DispatchGuard {
 public:
  explicit DispatchGuard(Dispatcher* top) : saved_(t_state.top) {
    t_state.top = top;
  }
  ~DispatchGuard() { t_state.top = saved_; }
  DispatchGuard(const DispatchGuard&) = delete;
  DispatchGuard& operator=(const DispatchGuard&) = delete;

 private:
  Dispatcher* saved_;
};

}  // namespace berth

#endif  // BERTH_OP_DISPATCHER_H_
