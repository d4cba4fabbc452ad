// Replica: what is open on the thread while run() traces one replica.
//
// Each replica is traced by itself. Where it meets the others its trace gets a
// _CrossReplica node; merge_replicas() puts what happens there in its place.
// One thread.

#ifndef BERTH_DISTRIBUTE_REPLICA_H_
#define BERTH_DISTRIBUTE_REPLICA_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "distribute/strategy_core.h"
#include "op/attrs.h"
#include "op/callable.h"
#include "op/replica_scope.h"

namespace berth {
class Tracer;
}

namespace berth::distribute {

using MergeFn =
    std::function<Tensors(const Strategy&, const std::vector<PerReplica>&)>;

// What the replicas of one run() have in common.
struct ReplicaGroup {
  std::shared_ptr<StrategyCore> core;
  // Examples by replica, of all tasks, -1 when nobody knows; empty: no argument
  // says.
  std::vector<int64_t> examples;
  // What means of losses divide by, in the order of their calls.
  std::vector<double> means;
  // The functions of merge_call(), traced in the first replica, in order.
  std::vector<std::shared_ptr<Callable>> merges;

  // Replicas of all tasks; of this one, and the first of these.
  int size() const { return core->num_replicas(); }
  int num_here() const { return core->num_here(); }
  int first_here() const { return core->first_here(); }
  // True for a replica that has no examples while others have some.
  bool is_empty(int replica) const;
};

// Device scopes of the caller are closed until the end of the block.
class NoDeviceScope {
 public:
  NoDeviceScope()
      : scope_(std::exchange(t_state.scope, nullptr)),
        device_(std::exchange(t_state.scope_device, nullptr)) {}
  ~NoDeviceScope() {
    t_state.scope = scope_;
    t_state.scope_device = device_;
  }
  NoDeviceScope(const NoDeviceScope&) = delete;
  NoDeviceScope& operator=(const NoDeviceScope&) = delete;

 private:
  const DeviceScope* const scope_;
  Device* const device_;
};

class Replica final : public ReplicaScope {
 public:
  // `tracer` is the one that this replica is traced with.
  Replica(ReplicaGroup& group, int id, const Tracer& tracer);
  ~Replica() override;
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const StrategyScope& strategy() const override { return *group_.core; }
  const std::shared_ptr<StrategyCore>& core() const { return group_.core; }
  int id() const override { return id_; }
  Tensor all_reduce(VariableAggregation how, const Tensor& value) override;
  Tensor to_write(const Tensor& handle, const Tensor& value,
                  const char* what) override;
  double share() const override;
  void check_mean(double all) override;

  Tensor all_gather(const Tensor& value, int64_t axis);
  Tensors merge_call(const MergeFn& fn, const Tensors& args);

 private:
  Tensors meet(const char* name, const Tensors& values,
               std::vector<Attrs::Pair> attrs);
  std::shared_ptr<Callable> traced_merge(const MergeFn& fn,
                                         const Tensors& args);
  Tensors call_here(const MergeFn& fn, const Tensors& args);

  ReplicaGroup& group_;
  const int id_;
  const Tracer& tracer_;
  size_t merges_ = 0, means_ = 0;  // of this replica so far
  StrategyScope* const outer_strategy_;
  ReplicaScope* const outer_replica_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_REPLICA_H_
