// lint_moves: says when an eager call fetches far more than it gives back.
//
// Acts in calls whose inputs came over from another device. Thread-safe.

#ifndef BERTH_EAGER_LINT_MOVES_H_
#define BERTH_EAGER_LINT_MOVES_H_

#include <cstdint>
#include <span>

#include "device/device.h"
#include "op/op_def.h"

namespace berth {

// Calls that fetch less than this are not looked at.
inline constexpr size_t kLintMovedBytes = 64 << 10;

// Reports "reduce-placement", once per op and line, when the scope that the
// user opened on `device` makes the call fetch at least four times what it
// would send if it ran where its largest input is; without a scope
// "kernel-missing", when the inputs' device lacks it. `in` as they were before.
void lint_moves(const OpDef& op, std::span<const Tensor* const> in,
                const InferContext& call, DType dtype, const Device& device);

}  // namespace berth

#endif  // BERTH_EAGER_LINT_MOVES_H_
