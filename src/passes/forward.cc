#include "passes/forward.h"

#include <algorithm>

namespace berth {

void add_sources(Node& to, const std::vector<NodeSource>& sources) {
  for (const NodeSource& s : sources) {
    if (to.sources.size() >= kMaxSources) return;
    if (std::find(to.sources.begin(), to.sources.end(), s) ==
        to.sources.end()) {
      to.sources.push_back(s);
    }
  }
}

bool same_shape(const Shape& a, const Shape& b) {
  return a == b && std::none_of(a.begin(), a.end(),
                                [](int64_t d) { return d == kUnknownDim; });
}

ValueRef Forwarding::resolve(ValueRef v) const {
  const Target& t = value_[v.node];
  if (t.node < 0) return v;
  return {t.node, t.output < 0 ? v.output : t.output};
}

void Forwarding::visit(int32_t i) {
  if (!any_) return;
  Node& node = graph_[i];
  for (ValueRef& v : node.inputs) v = resolve(v);
  if (node.follows >= 0) {
    // Merged nodes had one place; a forwarded one is left to finish().
    const Target& t = value_[node.follows];
    if (t.node >= 0 && t.output < 0) node.follows = t.node;
  }
  bool moved = false;
  for (int32_t& c : node.controls) {
    if (value_[c].node < 0) continue;
    c = value_[c].node;
    moved = true;
  }
  if (moved) {
    std::sort(node.controls.begin(), node.controls.end());
    node.controls.erase(std::unique(node.controls.begin(), node.controls.end()),
                        node.controls.end());
  }
}

bool Forwarding::may_forward(int32_t from, ValueRef to) const {
  const Node& node = graph_[from];
  if (!node.controls.empty()) return false;
  return !is_output_[from] || node.requested.empty() ||
         node.requested == graph_[to.node].requested;
}

void Forwarding::forward(int32_t from, ValueRef to) {
  value_[from] = {to.node, to.output};
  any_ = true;
  add_sources(graph_[to.node], graph_[from].sources);
}

void Forwarding::merge(int32_t from, int32_t to) {
  value_[from] = {to, -1};
  any_ = true;
  add_sources(graph_[to], graph_[from].sources);
}

void Forwarding::finish() {
  if (!any_) return;
  std::vector<bool> keep(graph_.nodes.size());
  for (int32_t i = 0; i < graph_.size(); ++i) keep[i] = value_[i].node < 0;
  for (int32_t i = 0; i < graph_.size(); ++i) {
    // A node of the same place stands in for the colocation as well; any
    // other leaves it to compact().
    Node& node = graph_[i];
    if (node.follows < 0 || keep[node.follows]) continue;
    const Node& gone = graph_[node.follows];
    const int32_t target = value_[node.follows].node;
    const Node& in_place = graph_[target];
    if (target != i && gone.requested == in_place.requested &&
        gone.follows == in_place.follows) {
      node.follows = target;
    }
  }
  for (ValueRef& v : graph_.outputs) v = resolve(v);
  graph_.compact(keep);
}

}  // namespace berth
