#include "graph/body.h"

#include <unordered_set>

#include "berth/errors.h"
#include "graph/replay.h"
#include "op/control_flow.h"
#include "tensor/tensor_impl.h"

namespace berth {

Body::Body(Graph graph) : graph_(std::move(graph)) {
  for (const int32_t a : graph_.args) {
    const OutSpec& s = graph_[a].outputs[0];
    inputs_.push_back({s.shape, s.dtype, graph_[a].name});
  }
  for (const ValueRef v : graph_.outputs) {
    outputs_.push_back({graph_.spec(v).shape, graph_.spec(v).dtype, {}});
  }
}

void Body::call(std::span<const Tensor* const> in, std::span<Tensor> out) {
  Tensors args;
  for (const Tensor* t : in.first(inputs_.size())) args.push_back(*t);
  Tensors results = replay(graph_, args);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(results[i]);
}

Tensors Body::gradient(std::span<const Tensor>, std::span<const Tensor>,
                       const Tensors&, const std::vector<bool>&) {
  throw errors::Unimplemented(name() + ": a body is not called by itself");
}

namespace {

const Graph* graph_of(const AttrValue& value) {
  const auto* f = std::get_if<std::shared_ptr<Callable>>(&value);
  return f && *f ? (*f)->body() : nullptr;
}

}  // namespace

void visit_bodies(
    const Node& node,
    const std::function<void(const std::string&, const Graph&)>& visit) {
  if (node.op->kind() != OpKind::kControl || !node.attrs.get()) return;
  for (const auto& [name, value] : node.attrs.get()->pairs()) {
    if (const Graph* g = graph_of(value)) visit(name, *g);
  }
}

void rewrite_bodies(
    Node& node,
    const std::function<bool(const std::string&, Graph&)>& rewrite) {
  if (node.op->kind() != OpKind::kControl || !node.attrs.get()) return;
  auto pairs = node.attrs.get()->pairs();
  bool changed = false;
  for (auto& [name, value] : pairs) {
    const Graph* g = graph_of(value);
    if (g == nullptr) continue;
    Graph copy = *g;
    if (!rewrite(name, copy)) continue;
    value = std::shared_ptr<Callable>(std::make_shared<Body>(std::move(copy)));
    changed = true;
  }
  if (changed) node.attrs = AttrsRef(std::move(pairs));
}

void change_bodies(Node& node, const std::function<void(Node&)>& change) {
  rewrite_bodies(node, [&](const std::string&, Graph& body) {
    for (Node& n : body.nodes) {
      change(n);
      change_bodies(n, change);
    }
    return true;
  });
}

bool Node::body_has_effect() const {
  bool effect = false;
  visit_bodies(*this, [&](const std::string&, const Graph& g) {
    for (const Node& n : g.nodes) effect = effect || n.has_effect();
  });
  return effect;
}

void set_arg(Node& node, int64_t index, DType dtype, const Shape& shape) {
  node.attrs = AttrsRef({{"index", index}, {"dtype", dtype}, {"shape", shape}});
  node.outputs = {{dtype, shape}};
}

void infer_bodies(Node& node, std::span<const SpecView> in) {
  const AttrsRef attrs = node.attrs;
  rewrite_bodies(node, [&](const std::string& role, Graph& g) {
    const auto callee =
        node.op->attr<std::shared_ptr<Callable>>(attrs.get(), role);
    const std::vector<int> from = callee_inputs(*node.op, attrs.get(), *callee);
    int first_row = -1, num_rows = 0;
    if (is_loop(*node.op)) {
      const WhileLayout l(*node.op, attrs.get());
      first_row = l.first_row();
      num_rows = l.num_rows;
    }
    bool changed = false;
    for (size_t i = 0; i < g.args.size() && i < from.size(); ++i) {
      const auto k = static_cast<size_t>(from[i]);
      if (k >= in.size()) return false;  // the shape rule says so
      Shape shape = *in[k].shape;
      if (from[i] >= first_row && from[i] < first_row + num_rows) {
        if (shape.rank() > 0) shape.erase(0);
      }
      Node& arg = g[g.args[i]];
      const OutSpec& s = arg.outputs[0];
      if (s.shape == shape || !s.shape.compatible_with(shape)) continue;
      changed = true;
      set_arg(arg, static_cast<int64_t>(i), s.dtype, shape);
    }
    if (changed) g.infer();
    return changed;
  });
}

std::vector<Tensor> variables_of(const Graph& graph) {
  std::vector<Tensor> handles;
  std::unordered_set<const VariableState*> known;
  auto add = [&](const Tensor& t) {
    if (known.insert(t.impl()->variable).second) handles.push_back(t);
  };
  for (const Node& n : graph.nodes) {
    if (n.variable.defined()) add(n.variable);
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      for (const Tensor& t : variables_of(body)) add(t);
    });
  }
  return handles;
}

namespace {

void add_written(const Graph& graph, const Node& node,
                 std::vector<Tensor>* written) {
  if (node.op->kind() == OpKind::kControl) {
    visit_bodies(node, [&](const std::string&, const Graph& body) {
      for (const Node& n : body.nodes) add_written(body, n, written);
    });
    return;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Node& from = graph[node.inputs[i].node];
    if (from.variable.defined() &&
        writes(node.op->input(static_cast<int>(i)).access)) {
      written->push_back(from.variable);
    }
  }
}

}  // namespace

std::vector<Tensor> written_by(const Graph& graph, const Node& node) {
  std::vector<Tensor> written;
  add_written(graph, node, &written);
  return written;
}

}  // namespace berth
