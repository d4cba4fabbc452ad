// bfloat16 and float16 in rules of gradients and in ops made of others: what
// is summed or subtracted on the way is float32, and rounded once at the end.
// Norms of them have parameters and moments of float32.

#ifndef BERTH_OPS_WIDENED_H_
#define BERTH_OPS_WIDENED_H_

#include "ops/op_call.h"

namespace berth {

// Returns x as float32 when it is bfloat16 or float16, else x.
Tensor widened(const Tensor& x);

// Returns y in the dtype of `like`.
Tensor rounded_like(const Tensor& y, const Tensor& like);

// Returns a parameter of a norm of x: as float32 when both have 16 bits, else
// as it is. May be an empty handle.
Tensor parameter_for(const Tensor& x, const Tensor& parameter);

// Fails unless input `parameter` has the dtype that norms of input x ask for.
void check_parameter_dtype(const InferContext& c, int x, int parameter);

// Fails unless the attribute "epsilon" of a norm is 0 or more.
void check_epsilon(const InferContext& c);

// Fails unless inputs a and b have one dtype.
void check_same_dtype(const InferContext& c, int a, int b);

}  // namespace berth

#endif  // BERTH_OPS_WIDENED_H_
