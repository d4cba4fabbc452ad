#include "exec/region_order.h"

#include <algorithm>

#include "graph/variable_range.h"

namespace berth {

namespace {

void sort_unique(std::vector<int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

RegionOrder find_order(const Graph& graph, const Schedule& schedule) {
  const size_t n = graph.nodes.size();
  RegionOrder order{std::vector<std::vector<int32_t>>(n),
                    std::vector<std::vector<int32_t>>(n)};
  std::vector<bool> runs(n, false);
  for (const ScheduleStep& s : schedule.steps) runs[s.node] = true;
  for (int32_t i = 0; i < graph.size(); ++i) {
    for (const ValueRef& v : graph[i].inputs) {
      auto& list = runs[v.node] ? order.producers[i] : order.before[i];
      if (runs[v.node]) {
        list.push_back(v.node);
      } else {
        const auto& through = order.before[v.node];
        list.insert(list.end(), through.begin(), through.end());
      }
    }
    for (int32_t c : graph[i].controls) {
      if (runs[c]) {
        order.before[i].push_back(c);
      } else {
        const auto& through = order.before[c];
        order.before[i].insert(order.before[i].end(), through.begin(),
                               through.end());
      }
    }
  }
  // Accesses of a variable, and other effects, keep the order of the schedule.
  VariableAccesses accesses;
  int32_t effect = -1;
  for (const ScheduleStep& s : schedule.steps) {
    const Node& node = graph[s.node];
    auto& before = order.before[s.node];
    bool variables = false;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (graph.spec(node.inputs[k]).dtype != resource) continue;
      variables = true;
      accesses.add(variable_range(graph, node.inputs[k]), s.node,
                   writes(node.op->input(static_cast<int>(k)).access), before);
    }
    if (node.has_effect() && !variables) {
      if (effect >= 0) before.push_back(effect);
      effect = s.node;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    sort_unique(order.producers[i]);
    sort_unique(order.before[i]);
    std::erase(order.before[i], static_cast<int32_t>(i));
  }
  return order;
}

}  // namespace berth
