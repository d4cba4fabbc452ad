// shard_step: divides the state of a step over the memories of its replicas.
//
// A graph rewrite after split_batch(), before collectives are lowered. A
// variable whose elements are divided (tensor/shards.h) is gathered before its
// readers, in the forward pass and again in the backward pass. Updates are made
// by ranges of elements: each device sums its part of a gradient, computes what
// is elementwise on that part, and updates; copies of a variable then get the
// parts of the others. What is not elementwise is computed whole. One thread
// per graph.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_SHARD_STEP_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_SHARD_STEP_H_

#include <utility>
#include <vector>

#include "berth/distribute.h"
#include "collective/emit.h"
#include "device/device.h"
#include "graph/graph.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

struct ShardPlan {
  Sharding level = Sharding::kNone;
  const void* strategy = nullptr;     // whose variables are divided
  std::vector<Device*> devices = {};  // by replica; each has its own memory
  bool exact = false;  // the bits of sums must not depend on the replicas
  int64_t pack_bytes = 4 << 20;  // on their way to all devices together

  bool divides() const { return devices.size() > 1; }
  // The elements [first, second) of n that device k has.
  std::pair<int64_t, int64_t> range(int64_t n, size_t k) const {
    const auto parts = static_cast<int64_t>(devices.size());
    const auto at = static_cast<int64_t>(k);
    return {n * at / parts, n * (at + 1) / parts};
  }
};

// Whether steps divide the variable: it is the strategy's and waits on the
// host.
bool is_divided(const VariableState& v, const ShardPlan& plan);

// Before split_batch(): divides the variables of the graph, and moves their
// updates out of conditions. Throws errors::Unimplemented for what writes one
// otherwise than by elements, errors::ResourceExhausted.
void divide_variables(Graph& graph, const ShardPlan& plan);

// After it.
void shard_step(Graph& graph, const ShardPlan& plan);

// Adds the handle of a shard or mirror, with the sources of node `like`.
ValueRef add_handle(Emit& emit, const Tensor& variable, DeviceId device,
                    int32_t like);

// The parts of shard_step(), in this order.
void update_by_ranges(Graph& graph, const ShardPlan& plan);
void exchange_ranges(Graph& graph, const ShardPlan& plan);
void gather_shards(Graph& graph, const ShardPlan& plan);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_SHARD_STEP_H_
