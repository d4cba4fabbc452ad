#include "passes/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "berth/errors.h"
#include "graph/node_part.h"
#include "graph/tracer.h"
#include "op/dispatcher.h"

namespace berth {

namespace {

// The decomposition of a node as a graph over its inputs.
Graph trace_parts(const Graph& graph, const Node& node) {
  const DispatchGuard outside(nullptr);
  Tracer tracer(node.name);
  Tensors args;
  for (const ValueRef& v : node.inputs) {
    args.push_back(
        tracer.add_arg({graph.spec(v).shape, graph.spec(v).dtype, {}}));
  }
  tracer.start();
  const Tensors results =
      node.op->decompose()(args, *node.op, node.attrs.get());
  return tracer.finish(results);
}

// Which nodes of a decomposition compute with operands of `node` that are cut:
// these have its slices.
std::vector<bool> find_cut(const Graph& graph, const Node& node,
                           const Graph& parts) {
  std::vector<bool> cut(parts.nodes.size(), false);
  const auto split = signature_of(graph, node);
  if (!split) return cut;
  if (adds_parts(graph, node)) {
    throw errors::Internal(fmt::format(
        "{}: {} gives a partial sum and has no kernel on {}; expected one: "
        "decompositions of sums cannot be split",
        node.name, node.op->name(), node.assigned));
  }
  for (int32_t p = 0; p < parts.size(); ++p) {
    const Node& part = parts[p];
    if (part.op->name() == "_Arg") {
      const int64_t index = part.op->attr<int64_t>(part.attrs.get(), "index");
      cut[p] = split->inputs[static_cast<size_t>(index)] >= 0;
    }
    for (const ValueRef& v : part.inputs) cut[p] = cut[p] || cut[v.node];
  }
  return cut;
}

// Builds the lowered graph node by node.
class Lowering {
 public:
  explicit Lowering(const Graph& from) : from_(from) {
    to_.name = from.name;
    values_.resize(from.nodes.size());
    last_.assign(from.nodes.size(), -1);
  }

  void keep(int32_t i) {
    Node node = from_[i];
    remap(node);
    const int32_t id = to_.add(std::move(node));
    for (int32_t o = 0; o < static_cast<int32_t>(to_[id].outputs.size()); ++o) {
      values_[i].push_back({id, o});
    }
    last_[i] = id;
  }

  void expand(int32_t i) {
    const Node& node = from_[i];
    const Graph parts = trace_parts(from_, node);
    std::vector<std::vector<ValueRef>> inner(parts.nodes.size());
    Node outer = node;
    remap(outer);
    const auto slices = slices_of(node.part);
    const std::vector<bool> cut = find_cut(from_, node, parts);
    for (int32_t p = 0; p < parts.size(); ++p) {
      const Node& part = parts[p];
      if (part.op->name() == "_Arg") {
        const int64_t index = part.op->attr<int64_t>(part.attrs.get(), "index");
        inner[p] = {outer.inputs[static_cast<size_t>(index)]};
        continue;
      }
      Node copy = part;
      copy.name = unique_name(to_, node.name + "/" + part.name);
      for (ValueRef& v : copy.inputs) v = inner[v.node][v.output];
      copy.controls = outer.controls;
      copy.requested = outer.requested;
      copy.assigned = outer.assigned;
      copy.follows = outer.follows;
      copy.sources = outer.sources;
      copy.replica = outer.replica;
      if (cut[p]) copy.part = slices;
      const int32_t id = to_.add(std::move(copy));
      last_[i] = id;
      for (int32_t o = 0; o < static_cast<int32_t>(part.outputs.size()); ++o) {
        inner[p].push_back({id, o});
      }
    }
    for (const ValueRef& v : parts.outputs) {
      values_[i].push_back(inner[v.node][v.output]);
    }
  }

  Graph take() {
    for (const ValueRef& v : from_.outputs) {
      to_.outputs.push_back(values_[v.node][v.output]);
    }
    for (int32_t a : from_.args) to_.args.push_back(last_[a]);
    return std::move(to_);
  }

 private:
  void remap(Node& node) const {
    for (ValueRef& v : node.inputs) v = values_[v.node][v.output];
    for (int32_t& c : node.controls) c = last_[c];
    std::erase(node.controls, -1);
    std::sort(node.controls.begin(), node.controls.end());
    if (node.follows >= 0) node.follows = last_[node.follows];
  }

  const Graph& from_;
  Graph to_;
  std::vector<std::vector<ValueRef>> values_;
  std::vector<int32_t> last_;  // the node that stands for an old one
};

}  // namespace

bool lower(Graph& graph, const std::function<bool(const Node&)>& has_kernel) {
  auto composite = [&](const Node& node) {
    return node.op->kind() == OpKind::kCompute && node.op->decompose() &&
           !has_kernel(node);
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), composite)) {
    return false;
  }
  Lowering lowering(graph);
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (composite(graph[i])) {
      lowering.expand(i);
    } else {
      lowering.keep(i);
    }
  }
  graph = lowering.take();
  // A decomposition may use composites again.
  lower(graph, has_kernel);
  return true;
}

}  // namespace berth
