#include "graph/replay.h"

#include <fmt/format.h>

#include "base/intern.h"
#include "berth/errors.h"
#include "op/contract_scope.h"
#include "op/dispatcher.h"
#include "tensor/tensor_impl.h"

namespace berth {

NodeContext::NodeContext(const Node& node, int32_t follows)
    : saved_(t_state), traced_as_(node) {
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
    push_scope(&scope_.emplace(), node.requested.name(), asked_at(node));
  }
}

NodeContext::~NodeContext() {
  if (scope_) pop_scope(&*scope_);
  t_state.site = saved_.site;
  t_state.layer = saved_.layer;
  t_state.follows = saved_.follows;
}

int32_t Replay::traced(int32_t i) const {
  if (i < 0 || values_[i].empty() || !values_[i][0].is_symbolic()) return -1;
  return values_[i][0].impl()->node;
}

std::vector<const Tensor*> Replay::inputs(int32_t i) const {
  std::vector<const Tensor*> in;
  for (const ValueRef& v : graph_[i].inputs) in.push_back(&value(v));
  return in;
}

void Replay::run(int32_t i, const Node& as) {
  Tensors& out = values_[i];
  const std::string& op = as.op->name();
  if (op == "_Arg") {
    out = {args_[as.op->attr<int64_t>(as.attrs.get(), "index")]};
    return;
  }
  if (op == "Const") {
    out = {as.op->attr<Tensor>(as.attrs.get(), "value")};
    return;
  }
  if (op == "VarHandleOp") {
    if (!as.variable.defined()) {
      throw errors::FailedPrecondition(fmt::format(
          "graph \"{}\": variable '{}' is only declared; expected a graph "
          "that was traced in this process",
          graph_.name, as.name));
    }
    out = {as.variable};
    return;
  }
  const std::vector<const Tensor*> in = inputs(i);
  const NodeContext context(as, traced(as.follows));
  out.resize(as.outputs.size());
  if (op == "_Transfer") {
    out[0] = *in[0];
  } else {
    apply(*as.op, in, as.attrs.get(), out);
  }
}

Tensors Replay::outputs() const {
  Tensors results;
  for (const ValueRef& v : graph_.outputs) results.push_back(value(v));
  return results;
}

Tensors replay(const Graph& graph, std::span<const Tensor> args) {
  Replay replay(graph, args);
  for (int32_t i = 0; i < graph.size(); ++i) replay.run(i);
  return replay.outputs();
}

}  // namespace berth
