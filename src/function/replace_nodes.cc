#include "function/replace_nodes.h"

#include <algorithm>

#include "function/control_flow.h"
#include "graph/replay.h"
#include "graph/tracer.h"

namespace berth {

bool replace_nodes(
    Graph& graph, const std::function<bool(const Node&)>& wanted,
    const std::function<Tensors(const Node&, const Tensors&)>& make) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), wanted)) {
    return false;
  }
  const BodyTrace inside;
  Tracer tracer(graph.name);
  Tensors args;
  for (const int32_t a : graph.args) {
    const OutSpec& s = graph[a].outputs[0];
    args.push_back(tracer.add_arg({s.shape, s.dtype, {}}));
  }
  tracer.start();
  Replay replay(graph, args);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    if (!wanted(n)) {
      replay.run(i);
      continue;
    }
    Tensors in;
    for (const Tensor* t : replay.inputs(i)) in.push_back(*t);
    const NodeContext context(n, -1);
    replay.values(i) = make(n, in);
  }
  Graph made = tracer.finish(replay.outputs());
  made.declared_ops = graph.declared_ops;
  graph = std::move(made);
  return true;
}

}  // namespace berth
