// plan_step: what a strategy would do with one training step.
//
// Traces the step on a whole batch, splits, lowers and places it as fit would,
// and asks the simulator how long it would take, beside the same step on one
// device. Nothing of it runs but measurements on scratch. One thread.

#ifndef BERTH_DISTRIBUTE_PLAN_STEP_H_
#define BERTH_DISTRIBUTE_PLAN_STEP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/distribute.h"
#include "graph/graph.h"

namespace berth::distribute {

struct StepToPlan {
  std::string name;
  // Of a whole batch: all dimensions known.
  std::vector<TensorSpec> args;
  std::function<Tensors(const Tensors&)> fn;
  std::vector<Variable> trainable;  // that the step should update
  int slices = 0;                   // of the model; 0: as the strategy says
};

// Times of what could not be measured (control flow, a kernel that refuses
// zeros, accelerators without measurements) are 0, and there is no advice.
// `may_measure`: for about a second the first time; what it measures is kept.
// Throws what tracing and compiling throw.
StrategyPlan plan_step(const std::shared_ptr<StrategyCore>& core,
                       const StepToPlan& step, bool may_measure = true);

// The parts of it, for tests.

// Returns the names of those variables that the graph does not write.
std::vector<std::string> unwritten(const Graph& graph,
                                   const std::vector<Variable>& variables);

// Returns what is added up over replicas for the updates of variables, packed
// as it will be. `graph` has _AllReduce nodes; `devices` are those of the
// replicas.
std::vector<StrategyPlan::Bucket> buckets_of(
    const Graph& graph, int64_t pack_bytes, bool one_memory,
    const std::vector<DeviceId>& devices = {});

// Returns "" or why there is little to gain.
std::string advice_for(const StrategyPlan& plan, bool one_memory);
// Returns whether more tasks pay; "": not known.
std::string advice_for_tasks(const StrategyPlan& plan, int tasks);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PLAN_STEP_H_
