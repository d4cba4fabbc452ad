// replay: runs the nodes of a graph, in order, through the seam.
//
// Under a tracer this copies (inlines) the graph, under a tape it
// differentiates it, with neither it interprets it. Device requests, source
// lines and colocation travel along.

#ifndef BERTH_GRAPH_REPLAY_H_
#define BERTH_GRAPH_REPLAY_H_

#include <optional>
#include <span>

#include "graph/graph.h"
#include "graph/tracer.h"
#include "op/device_scope.h"

namespace berth {

// The scope, line, layer, replica and colocation of a node, for the block's
// duration; with `follows` in the numbers of the trace that is open.
class NodeContext {
 public:
  NodeContext(const Node& node, int32_t follows);
  ~NodeContext();
  NodeContext(const NodeContext&) = delete;
  NodeContext& operator=(const NodeContext&) = delete;

 private:
  const ThreadState saved_;
  const TracedAs traced_as_;
  std::optional<DeviceScope> scope_;
  std::optional<ContractsSwap> contracts_;
};

// A graph that is replayed node by node, in its order.
class Replay {
 public:
  // `graph` outlives this.
  Replay(const Graph& graph, std::span<const Tensor> args)
      : graph_(graph), args_(args), values_(graph.nodes.size()) {}

  void run(int32_t i) { run(i, graph_[i]); }
  // Replays node i as `as` is: the same op, with a request or attributes of its
  // own.
  void run(int32_t i, const Node& as);
  // The results of node i; a caller that computes them otherwise sets them
  // here.
  Tensors& values(int32_t i) { return values_[i]; }
  const Tensor& value(ValueRef v) const { return values_[v.node][v.output]; }
  std::vector<const Tensor*> inputs(int32_t i) const;
  // The node that node i of the graph became in the trace that is open; -1:
  // none.
  int32_t traced(int32_t i) const;
  Tensors outputs() const;

 private:
  const Graph& graph_;
  const std::span<const Tensor> args_;
  std::vector<Tensors> values_;
};

// Returns the graph's outputs for `args`, one per graph.args. A null tensor in
// `args` is allowed where nobody reads the argument.
Tensors replay(const Graph& graph, std::span<const Tensor> args);

}  // namespace berth

#endif  // BERTH_GRAPH_REPLAY_H_
