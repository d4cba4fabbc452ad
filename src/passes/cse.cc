// Common subexpressions: of equal nodes the first one stays.
//
// Equal: op, attributes, operands, controls, request, place, colocation,
// replica and part, so reads of a variable with a write between them differ by
// their controls.

#include <unordered_map>

#include "graph/node_part.h"
#include "passes/forward.h"
#include "passes/pipeline.h"

namespace berth {

namespace {

// Larger constants are equal only when they are one tensor.
constexpr size_t kMaxComparedBytes = 4096;

bool may_merge(const Node& node) {
  const OpDef& op = *node.op;
  if (node.has_effect() || op.random()) return false;
  // Two runs of one body may draw different random numbers.
  if (op.kind() == OpKind::kControl) return false;
  return !op.graph_only() || op.kind() == OpKind::kConstant;
}

// x+y and y+x of floats may differ in the sign of a NaN, max(x,y) and
// max(y,x) in that of a zero; whole numbers and truth values do not.
bool any_order(const Graph& graph, const Node& node) {
  if (!node.op->commutative() || node.inputs.size() != 2) return false;
  return !is_inexact(graph.spec(node.inputs[0]).dtype) ||
         node.outputs[0].dtype == bool_;
}

class Key {
 public:
  template <class T>
  void add(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_text(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  void add_tensor(const Tensor& t) {
    const size_t n = static_cast<size_t>(t.num_elements()) * size_of(t.dtype());
    if (n > kMaxComparedBytes || t.dtype() == string_) {
      add(t.impl());
      return;
    }
    add(t.dtype());
    add(t.rank());
    for (const int64_t d : t.shape()) add(d);
    const size_t at = bytes_.size();
    bytes_.resize(at + n);
    t.copy_to(bytes_.data() + at);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// `placed`: what the place followed from no longer counts.
std::string key_of(const Graph& graph, const Node& node, bool placed) {
  Key key;
  key.add(node.op);
  if (node.op->kind() == OpKind::kConstant) {
    key.add_tensor(node.op->attr<Tensor>(node.attrs.get(), "value"));
  } else {
    key.add(node.attrs.get());
  }
  if (any_order(graph, node)) {
    key.add(std::min(node.inputs[0], node.inputs[1]));
    key.add(std::max(node.inputs[0], node.inputs[1]));
  } else {
    key.add(node.inputs.size());
    for (const ValueRef v : node.inputs) key.add(v);
  }
  key.add(node.controls.size());
  for (const int32_t c : node.controls) key.add(c);
  key.add_text(placed ? std::string() : node.requested.text());
  key.add_text(node.assigned.text());
  key.add(placed ? -1 : node.follows);
  key.add(node.replica);
  std::string part;
  if (node.part) append_part(part, *node.part);
  key.add_text(part);
  return key.take();
}

// Merges the nodes that `may` allows.
template <class May>
void merge_equal(Graph& graph, bool placed, const May& may) {
  Forwarding merged(graph);
  std::unordered_map<std::string, int32_t> first;
  first.reserve(graph.nodes.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    merged.visit(i);
    if (!may(i) || !may_merge(graph[i])) continue;
    const auto [it, fresh] = first.emplace(key_of(graph, graph[i], placed), i);
    if (!fresh) merged.merge(i, it->second);
  }
  merged.finish();
}

}  // namespace

void cse(Graph& graph) {
  merge_equal(graph, false, [](int32_t) { return true; });
}

void cse_parts(Graph& graph, const std::vector<bool>& among) {
  merge_equal(graph, true, [&](int32_t i) { return among[i]; });
}

}  // namespace berth
