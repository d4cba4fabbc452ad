// TaskParts: the parts of a step that run in other processes.
//
// A placed graph with devices of other tasks is split by task before it becomes
// a plan: the plan is this task's part, this object keeps the others. The
// module with devices of other tasks (remote/) registers the splitter.
// Thread-safe.

#ifndef BERTH_FUNCTION_TASK_PARTS_H_
#define BERTH_FUNCTION_TASK_PARTS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "graph/graph.h"
#include "place/contracts.h"

namespace berth {

class TaskParts {
 public:
  virtual ~TaskParts() = default;
  // Runs the whole step, as Plan::run() does; `local` is this task's part.
  virtual void run(Plan& local, std::span<const Tensor* const> in,
                   std::span<Tensor> out) = 0;
  // The arguments that this task's plan takes.
  virtual std::vector<const Tensor*> near_args(
      std::span<const Tensor* const> in) const = 0;
  // Adds the figures of the other parts to those of the plan.
  virtual void add_to(PlanInfo& info) const = 0;
  // Adds their ops, and what is sent between tasks, to the work of `local`.
  // `in`: the arguments of a call, or none.
  virtual void add_to(StepWork& work, const Plan& local,
                      std::span<const Tensor* const> in) const = 0;
  // Their graphs and plans as text.
  virtual std::string str() const = 0;
};

// Leaves this task's part in `graph` and returns the others. Returns null and
// leaves the graph as it was if there are none, or if they are driven op by op.
using TaskSplitter = std::unique_ptr<TaskParts> (*)(Graph& graph,
                                                    const PlanOptions& options);

// Registers the splitter to use from now on.
void set_task_splitter(TaskSplitter splitter);
std::unique_ptr<TaskParts> split_tasks(Graph& graph,
                                       const PlanOptions& options);

}  // namespace berth

#endif  // BERTH_FUNCTION_TASK_PARTS_H_
