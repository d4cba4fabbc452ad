// SplitStep: a step whose parts other tasks compile and run.
//
// Made where a placed graph becomes a plan. A run posts a command to each task
// and computes this task's part; values go directly between tasks. Results and
// variables stay on their tasks. Thread-safe: one run at a time.

#ifndef BERTH_REMOTE_TASK_PARTS_H_
#define BERTH_REMOTE_TASK_PARTS_H_

#include <memory>

#include "function/task_parts.h"

namespace berth::remote {

// See TaskSplitter.
std::unique_ptr<TaskParts> split_over_tasks(Graph& graph,
                                            const PlanOptions& options);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_TASK_PARTS_H_
