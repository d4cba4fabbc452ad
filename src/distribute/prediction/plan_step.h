// plan_step: predicts what a strategy does with one training step.
//
// Traces the step on a whole batch, splits, lowers and places it as fit would,
// and lets the simulator predict its time, beside the same step on one device.
// Nothing runs except measurements on scratch memory. One thread.

#ifndef BERTH_DISTRIBUTE_PREDICTION_PLAN_STEP_H_
#define BERTH_DISTRIBUTE_PREDICTION_PLAN_STEP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/distribute.h"
#include "graph/graph.h"

namespace berth::distribute {

struct StepToPlan {
  std::string name;
  // For a whole batch: all dimensions are known.
  std::vector<TensorSpec> args;
  std::function<Tensors(const Tensors&)> fn;
  std::vector<Variable> trainable;  // that the step should update
  int slices = 0;                   // set by the model; 0: set by the strategy
};

// Times of nodes that cannot be measured (control flow, a kernel that refuses
// zeros, accelerators without measurements) count as 0, and no advice is given.
// `may_measure`: measurements may take about a second the first time; they are
// kept. Throws the errors of tracing and compiling.
StrategyPlan plan_step(const std::shared_ptr<StrategyCore>& core,
                       const StepToPlan& step, bool may_measure = true);

// plan_step() and, if the step does not fit, the largest batch that does:
// `step_of` makes the step for a batch.
StrategyPlan plan_batch(const std::shared_ptr<StrategyCore>& core,
                        const StepToPlan& step,
                        const std::function<StepToPlan(int64_t)>& step_of);

// Its parts, exposed for tests.

// Returns the names of those variables that the graph does not write.
std::vector<std::string> unwritten(const Graph& graph,
                                   const std::vector<Variable>& variables);

// Returns the values that are summed over replicas for the updates of
// variables, in the buckets that they will be packed in. `graph` has _AllReduce
// nodes; `devices` are those of the replicas.
std::vector<StrategyPlan::Bucket> buckets_of(
    const Graph& graph, int64_t pack_bytes, bool one_memory,
    const std::vector<DeviceId>& devices = {});

// Returns why there is little to gain, or "".
std::string advice_for(const StrategyPlan& plan, bool one_memory);
// Returns whether more tasks pay; "": not known.
std::string advice_for_tasks(const StrategyPlan& plan, int tasks);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PREDICTION_PLAN_STEP_H_
