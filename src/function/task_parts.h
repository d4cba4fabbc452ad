// TaskParts: those parts of a step that run in other processes.
//
// A placed graph with devices of other tasks is cut by tasks before it becomes
// a plan: the plan is this task's part, the others are kept here. Who has
// devices of other tasks (remote/) says how. Thread-safe.

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
  // Those of the arguments that the plan of this task takes.
  virtual std::vector<const Tensor*> near_args(
      std::span<const Tensor* const> in) const = 0;
  // The figures of the other parts, added to those of the plan.
  virtual void add_to(PlanInfo& info) const = 0;
  // Their ops, and what goes from task to task, added to what `local` does.
  // `in`: the arguments of a call, or none.
  virtual void add_to(StepWork& work, const Plan& local,
                      std::span<const Tensor* const> in) const = 0;
  // Their graphs and plans as text.
  virtual std::string str() const = 0;
};

// Leaves this task's part in `graph` and returns the others; null, with the
// graph as it was: it has none, or is to be driven from here op by op.
using TaskSplitter = std::unique_ptr<TaskParts> (*)(Graph& graph,
                                                    const PlanOptions& options);

// From now on this one is asked.
void set_task_splitter(TaskSplitter splitter);
std::unique_ptr<TaskParts> split_tasks(Graph& graph,
                                       const PlanOptions& options);

}  // namespace berth

#endif  // BERTH_FUNCTION_TASK_PARTS_H_
