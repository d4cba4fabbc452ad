// custom_gradient: functions with a gradient of your own (tf.custom_gradient).
//
//   Tensor y = berth::custom_gradient(
//       [](const Tensors& x) {
//         const Tensor e = math::exp(x[0]);
//         return WithGradient{
//             {math::log(1.f + e)},
//             [e](const Tensors& dy) {
//               return Tensors{dy[0] * (1.f - 1.f / (1.f + e))};
//             }};
//       },
//       {x})[0];
//
// The gradient rule is used by tapes inside and outside of traced functions. It
// may use what the function computed, and can be differentiated again. In a
// trace it is traced with the function; eagerly it is called when a tape needs
// it. Variables that the function reads get no gradient through it: pass their
// values. Thread-safe as the function is.

#ifndef BERTH_CUSTOM_GRADIENT_H_
#define BERTH_CUSTOM_GRADIENT_H_

#include <functional>

#include "berth/site.h"
#include "berth/tensor.h"

namespace berth {

struct WithGradient {
  Tensors results;
  // From d(loss)/d(result), one per result, to d(loss)/d(argument), one per
  // argument; an empty Tensor where there is none.
  std::function<Tensors(const Tensors& dy)> gradient;
};
using CustomFn = std::function<WithGradient(const Tensors& x)>;

// Calls fn(x); tapes then differentiate it by its gradient rule. Throws the
// errors of fn, and errors::InvalidArgument if the rule returns a number of
// gradients other than that of the arguments, or one with a wrong shape.
Tensors custom_gradient(const CustomFn& fn, const Tensors& x,
                        Site site = Site::here());

}  // namespace berth

#endif  // BERTH_CUSTOM_GRADIENT_H_
