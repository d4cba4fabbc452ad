// What the ops of attention share.

#ifndef BERTH_OPS_ATTENTION_H_
#define BERTH_OPS_ATTENTION_H_

#include "berth/dtype.h"
#include "berth/tensor.h"

namespace berth {

// Returns what is added to scores of `dtype`: the mask, or of a bool one 0
// where it is true, else -inf. May be an empty handle.
Tensor added_mask(const Tensor& mask, DType dtype);

}  // namespace berth

#endif  // BERTH_OPS_ATTENTION_H_
