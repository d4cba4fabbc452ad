// Regions: which ops of a stream run as one instruction, split into slices.
//
// One pass over the schedule that reads split rules alone. Inside a region an
// op takes what a member made along the axis that the member was split; what it
// needs whole, or gets as a partial sum, must come from before the region. Ops
// may move forward within a stream, over ops they do not depend on, but never
// over a wait or a step that another stream waits for. The result depends on
// the graph and the number of slices alone. Used while a plan is built.

#ifndef BERTH_EXEC_REGIONS_H_
#define BERTH_EXEC_REGIONS_H_

#include <vector>

#include "device/device.h"
#include "exec/part_kernels.h"
#include "exec/slicing_rule.h"
#include "graph/graph.h"
#include "place/schedule.h"

namespace berth {

struct RegionMember {
  int32_t node = -1;
  const SplitSignature* split = nullptr;  // null: computed whole
  const PartKernels* kernels = nullptr;
};

struct Region {
  int32_t stream = -1;
  int parts = 1;  // more than 1: every member is split into so many
  std::vector<RegionMember> members;
};

// What the pass must know of a stream.
struct RegionStream {
  const Device* device = nullptr;
  // Parts of a fork; 1: every op is a region of its own.
  int slices = 1;
  SlicingRule rule = {};
};

// What one op computes and moves, and its work (slicing_rule.h).
struct OpWork {
  Cost cost;
  double work = 0;
};
OpWork work_of_op(const Graph& graph, int32_t node);

// Returns the regions in launch order and replaces the steps of `schedule` by
// one per region (`node` is its first member's), with waits between regions.
// `in_order`: nothing moves; regions are of neighbours.
std::vector<Region> grow_regions(const Graph& graph,
                                 const std::vector<RegionStream>& streams,
                                 PartBinder& binder, Schedule& schedule,
                                 bool in_order = false);

}  // namespace berth

#endif  // BERTH_EXEC_REGIONS_H_
