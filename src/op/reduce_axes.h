// Which axes a reduction reduces, for its shape rule, gradient and kernels.

#ifndef BERTH_OP_REDUCE_AXES_H_
#define BERTH_OP_REDUCE_AXES_H_

#include <array>

#include "op/op_def.h"

namespace berth {

// Returns a flag per axis of an input of rank `rank`, from the attributes
// "axis" and "all_axes". Throws errors::InvalidArgument for an axis out of
// range.
std::array<bool, kMaxRank> reduced_axes(const OpDef& op, const Attrs* attrs,
                                        int rank);

// Returns how many elements of `in` make one of the result.
inline double reduced_count(const OpDef& op, const Attrs* attrs,
                            const Shape& in) {
  const auto reduced = reduced_axes(op, attrs, in.rank());
  double n = 1;
  for (int i = 0; i < in.rank(); ++i) {
    if (reduced[i]) n *= static_cast<double>(in[i]);
  }
  return n;
}

}  // namespace berth

#endif  // BERTH_OP_REDUCE_AXES_H_
