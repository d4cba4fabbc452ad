#include "function/task_parts.h"

#include <atomic>

namespace berth {

namespace {
std::atomic<TaskSplitter> g_task_splitter{nullptr};
}

void set_task_splitter(TaskSplitter splitter) { g_task_splitter = splitter; }

std::unique_ptr<TaskParts> split_tasks(Graph& graph,
                                       const PlanOptions& options) {
  const TaskSplitter splitter = g_task_splitter;
  return splitter ? splitter(graph, options) : nullptr;
}

}  // namespace berth
