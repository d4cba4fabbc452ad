// recompute_grad: functions whose inner values are not kept for the gradient
// but computed again (tf.recompute_grad).
//
//   auto block = berth::recompute_grad([&](const Tensor& x) {
//     return math::tanh(matmul(math::tanh(matmul(x, a)), b));
//   });
//   GradientTape tape;
//   Tensor loss = math::reduce_sum(block(block(x)));
//   tape.gradient(loss, std::vector<Variable>{a, b});
//
// Under a tape such a function keeps its inputs, and a second run computes what
// the gradient of its variables needs, op by op the same, including random
// numbers. The step takes less memory and up to a third more time. Values and
// gradients are those of the plain function. Writes to variables happen once.
// The tape must see the call: for a berth::function, make it inside, as fit
// does. Without a tape the function just runs. Thread-safe as the function is.

#ifndef BERTH_RECOMPUTE_GRAD_H_
#define BERTH_RECOMPUTE_GRAD_H_

#include <functional>

#include "berth/site.h"
#include "berth/tensor.h"

namespace berth {

using RecomputedFn = std::function<Tensor(const Tensor&)>;
using RecomputedListFn = std::function<Tensors(const Tensors&)>;

// Returns a function that computes the same as `fn`, for tensors of any dtype.
// Throws the errors of `fn`, and errors::Unimplemented if `fn` reads a variable
// that it wrote before and the result depends on that.
RecomputedFn recompute_grad(RecomputedFn fn, Site site = Site::here());
RecomputedListFn recompute_grad(RecomputedListFn fn, Site site = Site::here());

// Calls fn(x) once in that way.
Tensors call_recomputed(const RecomputedListFn& fn, const Tensors& x,
                        Site site = Site::here());

}  // namespace berth

#endif  // BERTH_RECOMPUTE_GRAD_H_
