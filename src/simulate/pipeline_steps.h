// PipelineSteps: a step of several micro-batches in stages, as an ordinary
// step.
//
// The graph of the model is one micro-batch. A plan divides it into stages; the
// forward ops of a stage are one task per micro-batch, its backward ops
// another. The lane of a stage is the device of its first op. A lane runs its
// tasks in one of three orders; the tasks of all lanes together, micro-batch by
// micro-batch, are an ordinary step (simulate.h), whose end is the value of the
// plan. Pure functions.
//
// The rules:
//  - Tasks come in the order of simulate/task_order.h; in each of them, ops are
//  in
//    the plan's sequence. No op reads what comes later on this way.
//  - What a step has once (StepModel::once) and depends on a micro-batch
//    comes after the tasks, and so does all that depends on it. It
//    reads the values of the last micro-batch and waits for those of all. If
//    there are several micro-batches, the producer's device also holds the sum
//    of such values, and of results of backward ops, throughout.

#ifndef BERTH_SIMULATE_PIPELINE_STEPS_H_
#define BERTH_SIMULATE_PIPELINE_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/step_model.h"
#include "simulate/task_order.h"

namespace berth {

// How often a node is in a step.
enum class MicroBatchRole : uint8_t {
  kShared,  // once, before all micro-batches
  kEach,    // once per micro-batch
  kStep,    // once, after the micro-batches
};
std::vector<MicroBatchRole> roles_of(const StepModel& step);

// A plan divided into tasks.
struct PipelineShape {
  int32_t num_stages = 1;
  std::vector<MicroBatchRole> role;  // per node
  std::vector<int32_t> part;         // per node of kEach
  Rows<int32_t> ops;                 // per part: in the plan's sequence
  PipelineLanes lanes;
  std::vector<PipelineTask> tasks;
};

// Returns "", or why the plan has no tasks. Throws errors::InvalidArgument for
// too many of them.
std::string find_shape(const StepModel& step, const PlacePlan& plan,
                       PipelineShape& shape);

// The micro-batches of a shape as one step. Copies of a node are consecutive.
struct UnrolledSteps {
  SimulatedGraph graph;
  CostTable costs;
  PlacePlan plan;
  std::vector<int32_t> first;  // per node: its first copy
};
UnrolledSteps unroll(const StepModel& step, const PlacePlan& plan,
                     const PipelineShape& shape);

}  // namespace berth

#endif  // BERTH_SIMULATE_PIPELINE_STEPS_H_
