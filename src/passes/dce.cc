// Dead code: what neither an output nor an effect needs.
//
// A control edge is an order, not a need: a read that only a later write
// waits for goes, and its own controls take its place.

#include "passes/pipeline.h"

namespace berth {

void dce(Graph& graph) {
  std::vector<bool> keep(graph.nodes.size(), false);
  for (const int32_t a : graph.args) keep[a] = true;
  for (const ValueRef v : graph.outputs) keep[v.node] = true;
  for (int32_t i = graph.size() - 1; i >= 0; --i) {
    if (!keep[i] && !graph[i].has_effect()) continue;
    keep[i] = true;
    for (const ValueRef v : graph[i].inputs) keep[v.node] = true;
  }
  graph.compact(keep);
}

}  // namespace berth
