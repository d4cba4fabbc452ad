#include "passes/merge_updates.h"

#include <algorithm>
#include <map>

#include "passes/forward.h"

namespace berth {

namespace {

bool is_scalar(const Node& n, size_t i, const Graph& g) {
  const OutSpec& s = g.spec(n.inputs[i]);
  return s.dtype != resource && s.shape.rank() == 0;
}

bool is_small_update(const Graph& g, const Node& n, int64_t most) {
  if (!n.op->update() || n.inputs.size() != n.op->inputs().size()) return false;
  const int64_t elements = g.spec(n.inputs[0]).shape.num_elements();
  return elements >= 0 && elements <= most;
}

// Equal for updates that may be merged.
struct Kind {
  const OpDef* op;
  const Attrs* attrs;
  DeviceId device;
  std::vector<ValueRef> scalars;
  DType dtype;
  int32_t replica;

  auto operator<=>(const Kind&) const = default;
};

Kind kind_of(const Graph& g, const Node& n) {
  Kind k{n.op,     n.attrs.get(), n.assigned, {}, g.spec(n.inputs[0]).variable,
         n.replica};
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    // A scalar variable's gradient is one more.
    if (is_scalar(n, i, g) && static_cast<int>(i) != n.op->update_value()) {
      k.scalars.push_back(n.inputs[i]);
    }
  }
  return k;
}

// The members become part of the last of them, which stands after all that
// they read.
void merge(Graph& g, const std::vector<int32_t>& members) {
  static const OpDef& op = op_named("_MultiApply");
  Node node = g[members.back()];
  node.inputs.clear();
  for (const int32_t m : members) {
    const Node& from = g[m];
    node.inputs.insert(node.inputs.end(), from.inputs.begin(),
                       from.inputs.end());
    node.controls.insert(node.controls.end(), from.controls.begin(),
                         from.controls.end());
    if (m != members.back()) add_sources(node, from.sources);
  }
  std::sort(node.controls.begin(), node.controls.end());
  node.controls.erase(std::unique(node.controls.begin(), node.controls.end()),
                      node.controls.end());
  std::vector<Attrs::Pair> attrs;
  if (node.attrs.get()) attrs = node.attrs.get()->pairs();
  attrs.push_back({"op", node.op->name()});
  node.attrs = AttrsRef(std::move(attrs));
  node.op = &op;
  node.name = unique_name(g, node.name + "/merged");
  g[members.back()] = std::move(node);
}

}  // namespace

bool merge_updates(Graph& graph,
                   const std::function<bool(const Node& n)>& may_merge,
                   const std::function<MergeLimits(const Node& n)>& limits) {
  const auto users = graph.users();
  struct Open {
    std::vector<int32_t> members;
    int64_t elements = 0;
  };
  std::map<Kind, Open> open;
  std::vector<std::vector<int32_t>> groups;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    if (!users[i].empty() || !n.op->update() || n.part) continue;
    const MergeLimits limit = limits ? limits(n) : MergeLimits{};
    if (!is_small_update(graph, n, limit.variable) || !may_merge(n)) continue;
    Open& o = open[kind_of(graph, n)];
    const int64_t elements = graph.spec(n.inputs[0]).shape.num_elements();
    if (o.elements + elements > limit.together) {
      groups.push_back(std::move(o.members));
      o = {};
    }
    o.members.push_back(i);
    o.elements += elements;
  }
  for (auto& [kind, o] : open) groups.push_back(std::move(o.members));
  std::vector<bool> keep(graph.nodes.size(), true);
  bool any = false;
  for (const auto& members : groups) {
    if (members.size() < 2) continue;
    any = true;
    merge(graph, members);
    for (size_t m = 0; m + 1 < members.size(); ++m) keep[members[m]] = false;
  }
  if (any) graph.compact(keep);
  return any;
}

}  // namespace berth
