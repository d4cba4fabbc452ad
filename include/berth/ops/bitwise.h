// bitwise: operations on the bits of integers (tf.bitwise.*).
//
// Integers of equal dtypes, broadcast as in NumPy. Throw
// errors::InvalidArgument for shapes or dtypes that do not fit. Thread-safe.

#ifndef BERTH_OPS_BITWISE_H_
#define BERTH_OPS_BITWISE_H_

#include "berth/tensor.h"

namespace berth::bitwise {

Tensor bitwise_and(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor bitwise_or(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor bitwise_xor(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor invert(const Tensor& x, Site site = Site::here());
// By b bits, which count as 0 if negative and as width - 1 if larger; right
// shifts of negative numbers fill with ones.
Tensor left_shift(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor right_shift(const Tensor& a, const Tensor& b, Site site = Site::here());

}  // namespace berth::bitwise

#endif  // BERTH_OPS_BITWISE_H_
