// merge_updates: small updates by one optimizer become one _MultiApply.
//
// Runs after placement, per device, on updates (OpBuilder::update()) of equal
// op, attributes and scalars for which nobody waits. Up to a limit: a plan
// frees a large gradient as early as its own update. Bits stay.

#ifndef BERTH_PASSES_MERGE_UPDATES_H_
#define BERTH_PASSES_MERGE_UPDATES_H_

#include <functional>

#include "graph/graph.h"

namespace berth {

// Elements of a variable that is still small, and of a merged update.
struct MergeLimits {
  int64_t variable = 4096;
  int64_t together = 32768;
};

// `may_merge(n)`: whether the device of the update has a kernel of _MultiApply
// that takes it. `limits(n)`: those of that device; null: those above. Returns
// true when anything changed.
bool merge_updates(
    Graph& graph, const std::function<bool(const Node& n)>& may_merge,
    const std::function<MergeLimits(const Node& n)>& limits = nullptr);

}  // namespace berth

#endif  // BERTH_PASSES_MERGE_UPDATES_H_
