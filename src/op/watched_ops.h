// A watcher of all ops: debugging::enable_check_numerics() and
// enable_dump_debug_info(), which need functions op by op. Thread-safe.

#ifndef BERTH_OP_WATCHED_OPS_H_
#define BERTH_OP_WATCHED_OPS_H_

#include <atomic>
#include <span>

#include "base/diagnostics.h"
#include "berth/tensor.h"

namespace berth {

class OpDef;

// Called after each eager op; null: nobody is.
using OpWatcher = void (*)(const OpDef& op, std::span<const Tensor> out);
inline std::atomic<OpWatcher> g_op_watcher{nullptr};

inline bool wants_op_by_op() {
  return g_check_numerics.load(std::memory_order_relaxed) ||
         g_op_watcher.load(std::memory_order_relaxed) != nullptr;
}

}  // namespace berth

#endif  // BERTH_OP_WATCHED_OPS_H_
