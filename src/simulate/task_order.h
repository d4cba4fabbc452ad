// The order in which the devices of a pipeline run the parts of micro-batches.
//
// The forward ops of a stage are one task per micro-batch, its backward ops
// another. The lane of a stage is its device. Pure functions.
//
//  - kGPipe: a lane runs the forward tasks of all micro-batches, then all
//    backward ones.
//  - k1F1B: some forward tasks first, then forward and backward in turns, then
//    the remaining backward ones. First come as many as there are lanes after
//    it. kInterleaved is the same for lanes of v > 1 stages: first come twice
//    as many, and lanes * (v - 1) more; forward tasks go by groups of as many
//    micro-batches as there are lanes, in a group by stage; backward tasks
//    likewise, the last stage first. Lanes are ordered by their first stage.
//  - In every round each lane, by number of its device, runs its next task if
//    the task before it on the micro-batch's way through the stages and back
//    was in an earlier round. That is the sequence of tasks.

#ifndef BERTH_SIMULATE_TASK_ORDER_H_
#define BERTH_SIMULATE_TASK_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/simulate.h"

namespace berth {

struct PipelineTask {
  int32_t part = 0;  // forward ones of stages 0 to K - 1, backward K - 1 to 0
  int32_t micro_batch = 0;
};

// What the order of tasks depends on.
struct PipelineLanes {
  std::vector<int32_t> lane;  // per stage; -1: a stage without ops
  std::vector<uint8_t> any;   // per part: it has ops
};

// Returns all tasks of this many micro-batches in their sequence; nothing if
// tasks wait for each other.
std::vector<PipelineTask> task_order(const PipelineLanes& lanes,
                                     int32_t micro_batches,
                                     PipelineOrder order);

// Returns, per stage, how many micro-batches are between their two tasks.
std::vector<int32_t> most_in_flight(const std::vector<PipelineTask>& tasks,
                                    const PipelineLanes& lanes);

const char* order_name(PipelineOrder order);  // "1f1b"
// Throws errors::InvalidArgument unless it is one of the names.
PipelineOrder order_of_name(const std::string& name);

}  // namespace berth

#endif  // BERTH_SIMULATE_TASK_ORDER_H_
