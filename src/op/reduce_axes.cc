#include "op/reduce_axes.h"

namespace berth {

std::array<bool, kMaxRank> reduced_axes(const OpDef& op, const Attrs* attrs,
                                        int rank) {
  std::array<bool, kMaxRank> reduced{};
  if (op.attr<bool>(attrs, "all_axes")) {
    reduced.fill(true);
    return reduced;
  }
  for (int64_t axis : op.attr<std::vector<int64_t>>(attrs, "axis")) {
    reduced[normalize_axis(axis, rank, op.name().c_str())] = true;
  }
  return reduced;
}

}  // namespace berth
