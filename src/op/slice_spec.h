// What a StridedSlice takes of each axis, for its shape rule, gradient and
// kernels.

#ifndef BERTH_OP_SLICE_SPEC_H_
#define BERTH_OP_SLICE_SPEC_H_

#include <array>

#include "op/op_def.h"

namespace berth {

struct SliceAxis {
  int64_t begin = 0;  // the first element taken
  int64_t stride = 1;
  int64_t size = 0;     // how many; negative: not known
  bool shrink = false;  // an index: the axis goes away
  bool whole = false;   // all of the axis in order
};

// Reads "begin", "end", "strides" and the masks against the sliced shape
// `in`: TensorFlow's rules; missing last axes are whole. Throws
// errors::InvalidArgument for a stride of 0, an index out of range, lists of
// unequal length or longer than the rank.
std::array<SliceAxis, kMaxRank> slice_axes(const OpDef& op, const Attrs* attrs,
                                           const Shape& in);

}  // namespace berth

#endif  // BERTH_OP_SLICE_SPEC_H_
