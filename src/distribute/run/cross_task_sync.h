// TaskMeetings: where replicas of run() meet those of other tasks, and where
// values of replicas meet outside of run().
//
// The trace numbers the nodes that these make, alike in all tasks. One thread.

#ifndef BERTH_DISTRIBUTE_RUN_CROSS_TASK_SYNC_H_
#define BERTH_DISTRIBUTE_RUN_CROSS_TASK_SYNC_H_

#include <vector>

#include "distribute/strategy/strategy_core.h"
#include "graph/graph.h"

namespace berth::distribute {

class TaskMeetings {
 public:
  // `trace`: of a replica of this task; if meetings depend on each other there,
  // they do so in all tasks.
  TaskMeetings(StrategyCore& core, const Graph& trace,
               const std::vector<int64_t>& examples);
  // For values outside of run().
  explicit TaskMeetings(StrategyCore& core);

  bool several() const { return core_.link() != nullptr; }
  // Whether this task has the first replica with examples.
  bool has_first() const;
  // The sum over all tasks, or what the attribute "reduction" of `like` names,
  // for each replica of this task.
  Tensors reduce(int32_t node, const Tensors& pieces, const TensorSpec& spec,
                 const Attrs* like);
  // The values of all tasks, concatenated along the axis.
  Tensor gather(int32_t node, const Tensor& mine, int64_t axis);
  // Number of rows in the replicas of the tasks before this one.
  int64_t rows_before(const Tensors& parts, int axis);

  static bool is_meeting(const Node& n);
  // A meeting in the function of merge_call().
  Node in_call(int32_t call, const Node& n);

 private:
  std::vector<Attrs::Pair> attrs(int32_t node, const TensorSpec& spec,
                                 size_t replicas);
  std::vector<int64_t> lengths(int64_t mine, const char* what);

  StrategyCore& core_;
  const std::vector<int64_t> examples_;
  int64_t base_ = 0;
  std::vector<int64_t> level_;  // by node of the trace
  std::vector<bool> feeds_;
};

// Combines values of this task with those of all tasks, traced or immediately.
Tensor sum_over_tasks(StrategyCore& core, const Tensor& value);
Tensor gather_over_tasks(StrategyCore& core, const Tensor& value, int64_t axis);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_RUN_CROSS_TASK_SYNC_H_
