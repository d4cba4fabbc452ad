#include "graph/replay.h"

#include <fmt/format.h>

#include <optional>

#include "base/intern.h"
#include "berth/errors.h"
#include "op/contract_scope.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "graph/tracer.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

// The scope, line and colocation of a node, for the block's duration.
class NodeContext {
 public:
  NodeContext(const Node& node, int32_t follows) : saved_(t_state) {
    t_state.site = node.sources.empty() ? Site{} : node.sources[0].site;
    t_state.follows = follows;
    // Under the layer that it was written in.
    const std::string& name =
        node.sources.empty() ? node.name : node.sources[0].name;
    if (const size_t end = name.rfind('/'); end != name.npos) {
      // A tape keeps it.
      t_state.layer = intern(name.substr(0, end));
    }
    if (!node.sources.empty() && node.sources[0].contracts) {
      contracts_.emplace(joined(node.sources[0].contracts, open_contracts()));
    }
    if (!node.requested.empty()) {
      push_scope(&scope_.emplace(), DeviceName::parse(node.requested),
                 t_state.site);
    }
  }
  ~NodeContext() {
    if (scope_) pop_scope(&*scope_);
    t_state.site = saved_.site;
    t_state.layer = saved_.layer;
    t_state.follows = saved_.follows;
  }

 private:
  const ThreadState saved_;
  std::optional<DeviceScope> scope_;
  std::optional<ContractsSwap> contracts_;
};

}  // namespace

Tensors replay(const Graph& graph, std::span<const Tensor> args) {
  std::vector<Tensors> values(graph.nodes.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph[i];
    Tensors& out = values[i];
    const std::string& op = node.op->name();
    if (op == "_Arg") {
      out = {args[node.op->attr<int64_t>(node.attrs.get(), "index")]};
      continue;
    }
    if (op == "Const") {
      out = {node.op->attr<Tensor>(node.attrs.get(), "value")};
      continue;
    }
    if (op == "VarHandleOp") {
      if (!node.variable.defined()) {
        throw errors::FailedPrecondition(fmt::format(
            "graph \"{}\": variable '{}' is only declared; expected a graph "
            "that was traced in this process",
            graph.name, node.name));
      }
      out = {node.variable};
      continue;
    }
    std::vector<const Tensor*> in;
    for (const ValueRef& v : node.inputs) {
      in.push_back(&values[v.node][v.output]);
    }
    int32_t follows = -1;
    if (node.follows >= 0 && !values[node.follows].empty() &&
        values[node.follows][0].is_symbolic()) {
      follows = values[node.follows][0].impl()->node;
    }
    const NodeContext context(node, follows);
    const TracedAs traced_as(node);
    out.resize(node.outputs.size());
    if (op == "_Transfer") {
      out[0] = *in[0];
    } else {
      apply(*node.op, in, node.attrs.get(), out);
    }
  }
  Tensors results;
  for (const ValueRef& v : graph.outputs) {
    results.push_back(values[v.node][v.output]);
  }
  return results;
}

}  // namespace berth
