// Replica: the open context of the thread while run() traces one replica.
//
// Each replica is traced by itself. Where it meets the others its trace gets a
// _CrossReplica node, which merge_replicas() later replaces. One thread.

#ifndef BERTH_DISTRIBUTE_RUN_REPLICA_H_
#define BERTH_DISTRIBUTE_RUN_REPLICA_H_

#include <functional>
#include <memory>
#include <vector>

#include "distribute/strategy/strategy_core.h"
#include "op/attrs.h"
#include "op/callable.h"
#include "op/replica_scope.h"

namespace berth {
class Tracer;
}

namespace berth::distribute {

using MergeFn =
    std::function<Tensors(const Strategy&, const std::vector<PerReplica>&)>;

// State shared by the replicas of one run().
struct ReplicaGroup {
  std::shared_ptr<StrategyCore> core;
  // Examples by replica, of all tasks; -1 if unknown; empty: no argument tells.
  std::vector<int64_t> examples;
  // Divisors of the means of losses, in the order of the calls.
  std::vector<double> means;
  // The functions of merge_call(), traced in the first replica, in order.
  std::vector<std::shared_ptr<Callable>> merges;

  // Number of replicas of all tasks; below: of this task, and its first one.
  int size() const { return core->num_replicas(); }
  int num_here() const { return core->num_here(); }
  int first_here() const { return core->first_here(); }
  // Whether a replica has no examples while others have some.
  bool is_empty(int replica) const;
};

class Replica final : public ReplicaScope {
 public:
  // `tracer` traces this replica.
  Replica(ReplicaGroup& group, int id, const Tracer& tracer);
  ~Replica() override;
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  StrategyScope& strategy() const override { return *group_.core; }
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
  size_t merges_ = 0, means_ = 0;  // so far in this replica
  StrategyScope* const outer_strategy_;
  ReplicaScope* const outer_replica_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_RUN_REPLICA_H_
