// flow_through: what gradient rules of functions with poles return.

#ifndef BERTH_OPS_FLOW_THROUGH_H_
#define BERTH_OPS_FLOW_THROUGH_H_

#include "berth/tensor.h"

namespace berth {

// Returns dy * slope, and 0 where nothing flows back though the slope is not
// finite there (a root at 0, after a `where` that takes the other branch).
Tensor flow_through(const Tensor& dy, const Tensor& slope);

// Returns dy / conj(x) such that of nothing that flows back nothing flows on in
// the second derivative: 1 / x has a pole, too.
Tensor over(const Tensor& dy, const Tensor& x);

}  // namespace berth

#endif  // BERTH_OPS_FLOW_THROUGH_H_
