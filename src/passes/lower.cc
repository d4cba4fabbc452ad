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

// The parts that the nodes of a decomposition have when `node` is a part of an
// op on a whole batch: each is split where its operands are.
class PartsOf {
 public:
  PartsOf(const Graph& graph, const Node& node, const Graph& parts)
      : node_(node), parts_(parts), part_(parts.nodes.size()) {
    if (const auto split = signature_of(graph, node)) find(*split);
  }
  const std::shared_ptr<const NodePart>& of(int32_t node) const {
    return part_[static_cast<size_t>(node)];
  }

 private:
  void find(const SplitSignature& outer) {
    axes_.resize(parts_.nodes.size());
    for (int32_t p = 0; p < parts_.size(); ++p) {
      const Node& n = parts_[p];
      axes_[p].assign(n.outputs.size(), SplitSignature::kWhole);
      if (n.op->kind() == OpKind::kArgument) {
        const int64_t index = n.op->attr<int64_t>(n.attrs.get(), "index");
        axes_[p][0] = outer.inputs[static_cast<size_t>(index)];
      } else if (std::any_of(
                     n.inputs.begin(), n.inputs.end(),
                     [&](const ValueRef& v) { return axis_of(v) >= 0; })) {
        cut(p, n);
      }
    }
  }

  int8_t axis_of(const ValueRef& v) const {
    return axes_[v.node][static_cast<size_t>(v.output)];
  }

  // By the rule whose operands are split as those of the node are, if there is
  // one. Sums over parts are refused: means would count a part.
  void cut(int32_t p, const Node& n) {
    std::vector<SplitSignature> rules;
    if (n.op->split()) {
      std::vector<SpecView> in;
      for (const ValueRef& v : n.inputs) in.push_back(parts_.spec(v).view());
      std::vector<OutSpec> out = n.outputs;
      rules = n.op->split()(InferContext(*n.op, n.attrs.get(), in, out));
    }
    for (size_t i = 0; i < rules.size(); ++i) {
      bool fits = rules[i].inputs.size() == n.inputs.size();
      for (size_t k = 0; fits && k < n.inputs.size(); ++k) {
        fits = rules[i].inputs[k] == axis_of(n.inputs[k]);
      }
      if (!fits) continue;
      axes_[p] = rules[i].outputs;
      NodePart part;
      if (const auto slices = slices_of(node_.part)) part = *slices;
      part.signature = static_cast<int32_t>(i);
      part_[p] = std::make_shared<const NodePart>(part);
      break;
    }
    for (const int8_t axis : axes_[p]) {
      if (axis == SplitSignature::kPartialSum) fail(n);
    }
  }

  [[noreturn]] void fail(const Node& n) const {
    throw errors::Internal(fmt::format(
        "{}: {} has no kernel on {}, and {} of its decomposition adds up a "
        "part of the batch; expected an op that is decomposed before the "
        "batch is split",
        node_.name, node_.op->name(), node_.assigned.text(), n.op->name()));
  }

  const Node& node_;
  const Graph& parts_;
  std::vector<std::vector<int8_t>> axes_;  // by node and output
  std::vector<std::shared_ptr<const NodePart>> part_;
};

// Builds the lowered graph node by node.
class Lowering {
 public:
  // `parts`: nodes of earlier decompositions.
  Lowering(const Graph& from, const std::vector<bool>& parts)
      : from_(from), parts_(parts) {
    to_.name = from.name;
    values_.resize(from.nodes.size());
    last_.assign(from.nodes.size(), -1);
  }

  void keep(int32_t i) {
    Node node = from_[i];
    remap(node);
    const int32_t id = add(std::move(node), parts_.at(i));
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
    const PartsOf part_of(from_, node, parts);
    for (int32_t p = 0; p < parts.size(); ++p) {
      const Node& part = parts[p];
      if (part.op->kind() == OpKind::kArgument) {
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
      copy.collective = outer.collective;
      copy.part = part_of.of(p);
      const int32_t id = add(std::move(copy), true);
      last_[i] = id;
      for (int32_t o = 0; o < static_cast<int32_t>(part.outputs.size()); ++o) {
        inner[p].push_back({id, o});
      }
    }
    for (const ValueRef& v : parts.outputs) {
      values_[i].push_back(inner[v.node][v.output]);
    }
  }

  // Returns which nodes of the new graph are of decompositions.
  std::vector<bool> take_parts() { return std::move(now_parts_); }
  Graph take() {
    for (const ValueRef& v : from_.outputs) {
      to_.outputs.push_back(values_[v.node][v.output]);
    }
    for (int32_t a : from_.args) to_.args.push_back(last_[a]);
    return std::move(to_);
  }

 private:
  int32_t add(Node node, bool part) {
    now_parts_.push_back(part);
    return to_.add(std::move(node));
  }
  void remap(Node& node) const {
    for (ValueRef& v : node.inputs) v = values_[v.node][v.output];
    for (int32_t& c : node.controls) c = last_[c];
    std::erase(node.controls, -1);
    std::sort(node.controls.begin(), node.controls.end());
    if (node.follows >= 0) node.follows = last_[node.follows];
  }

  const Graph& from_;
  const std::vector<bool>& parts_;
  Graph to_;
  std::vector<bool> now_parts_;
  std::vector<std::vector<ValueRef>> values_;
  std::vector<int32_t> last_;  // the node that stands for an old one
};

bool lower_once(Graph& graph,
                const std::function<bool(const Node&)>& has_kernel,
                std::vector<bool>& parts) {
  std::vector<bool> composite;
  for (const Node& node : graph.nodes) {
    composite.push_back(node.op->kind() == OpKind::kCompute &&
                        node.op->decompose() && !has_kernel(node));
  }
  if (std::find(composite.begin(), composite.end(), true) == composite.end()) {
    return false;
  }
  Lowering lowering(graph, parts);
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (composite[i]) {
      lowering.expand(i);
    } else {
      lowering.keep(i);
    }
  }
  graph = lowering.take();
  parts = lowering.take_parts();
  return true;
}

}  // namespace

bool lower(Graph& graph, const std::function<bool(const Node&)>& has_kernel,
           std::vector<bool>* parts) {
  std::vector<bool> own(graph.nodes.size(), false);
  bool any = false;
  // A decomposition may use composites again.
  while (lower_once(graph, has_kernel, own)) any = true;
  if (parts) *parts = std::move(own);
  return any;
}

}  // namespace berth
