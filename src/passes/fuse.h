// fuse: groups of elementwise ops of one device become one _Fused op each.
//
// Runs after placement and lowering, per device. A group is grown from what
// OpDef says (elementwise, codes known to expr/): no list of patterns. Its
// members have one result shape, so nothing is computed twice; a member that
// others read becomes an output. Never across control edges. Bits stay.

#ifndef BERTH_PASSES_FUSE_H_
#define BERTH_PASSES_FUSE_H_

#include <functional>

#include "graph/graph.h"

namespace berth {

// Results of fewer elements are left alone: a call costs more than it saves.
inline constexpr int64_t kMinFusedElements = 256;

// `may_fuse(device, dtype)`: whether the device of this name has a kernel of
// _Fused that takes values of this dtype: bfloat16, float16, or float32 for all
// others. Returns true when anything changed.
bool fuse(Graph& graph,
          const std::function<bool(DeviceId device, DType dtype)>& may_fuse);

}  // namespace berth

#endif  // BERTH_PASSES_FUSE_H_
