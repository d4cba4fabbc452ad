#include "graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/body.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth {

Site asked_at(const Node& node) {
  if (node.sources.empty()) return {};
  for (const NodeSource& source : node.sources) {
    if (!node.requested.empty() && source.asked.file) return source.asked;
  }
  return node.sources[0].site;
}

std::string NameIndex::unique(const std::vector<Node>& nodes,
                              const std::string& name) {
  if (seen_ > nodes.size()) clear();
  for (; seen_ < nodes.size(); ++seen_) next_.try_emplace(nodes[seen_].name, 1);
  const auto it = next_.find(name);
  if (it == next_.end()) return name;
  for (;;) {
    std::string candidate = fmt::format("{}_{}", name, it->second++);
    if (!next_.contains(candidate)) return candidate;
  }
}

std::string unique_name(const Graph& graph, const std::string& name) {
  return graph.names_.unique(graph.nodes, name);
}

std::vector<std::vector<int32_t>> Graph::users() const {
  std::vector<std::vector<int32_t>> users(nodes.size());
  auto add = [&](int32_t of, int32_t user) {
    std::vector<int32_t>& list = users[of];
    if (list.empty() || list.back() != user) list.push_back(user);
  };
  for (int32_t i = 0; i < size(); ++i) {
    for (const ValueRef v : nodes[i].inputs) add(v.node, i);
    for (const int32_t c : nodes[i].controls) add(c, i);
  }
  return users;
}

namespace {

void sort_unique(std::vector<int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Puts the controls of nodes that go in their place. `controls` of the nodes
// that go are already free of such; so one step is enough.
void skip_gone(const std::vector<Node>& nodes, const std::vector<bool>& keep,
               std::vector<int32_t>& controls) {
  auto gone = [&](int32_t c) { return !keep[c]; };
  if (std::none_of(controls.begin(), controls.end(), gone)) return;
  std::vector<int32_t> result;
  for (const int32_t c : controls) {
    if (keep[c]) {
      result.push_back(c);
    } else {
      result.insert(result.end(), nodes[c].controls.begin(),
                    nodes[c].controls.end());
    }
  }
  sort_unique(result);
  controls = std::move(result);
}

}  // namespace

void Graph::compact(const std::vector<bool>& keep) {
  std::vector<int32_t> to(nodes.size(), -1);
  int32_t n = 0;
  for (int32_t i = 0; i < size(); ++i) {
    Node& node = nodes[i];
    skip_gone(nodes, keep, node.controls);
    // Colocation may look forward; the targets' targets are read before any
    // is renumbered.
    for (int32_t hops = 0; node.follows >= 0 && !keep[node.follows];) {
      const Node& target = nodes[node.follows];
      if (node.requested.empty()) node.requested = target.requested;
      node.follows = ++hops > size() ? -1 : target.follows;
    }
    if (keep[i]) to[i] = n++;
  }
  if (n == size()) return;
  for (int32_t i = 0; i < size(); ++i) {
    if (!keep[i]) continue;
    Node& node = nodes[i];
    for (ValueRef& v : node.inputs) v.node = to[v.node];
    for (int32_t& c : node.controls) c = to[c];
    if (node.follows >= 0) node.follows = to[node.follows];
    if (node.follows == to[i]) node.follows = -1;
    if (to[i] != i) nodes[to[i]] = std::move(node);
  }
  nodes.resize(static_cast<size_t>(n));
  std::erase_if(args, [&](int32_t a) { return to[a] < 0; });
  for (int32_t& a : args) a = to[a];
  for (ValueRef& v : outputs) v.node = to[v.node];
  names_.clear();
}

void Graph::renumber(const std::vector<int32_t>& to) {
  std::vector<Node> moved(nodes.size());
  for (int32_t i = 0; i < size(); ++i) {
    Node& n = nodes[i];
    for (ValueRef& v : n.inputs) v.node = to[v.node];
    for (int32_t& c : n.controls) c = to[c];
    std::sort(n.controls.begin(), n.controls.end());
    if (n.follows >= 0) n.follows = to[n.follows];
    moved[to[i]] = std::move(n);
  }
  nodes = std::move(moved);
  for (int32_t& a : args) a = to[a];
  for (ValueRef& v : outputs) v.node = to[v.node];
}

namespace {

// Errors of a shape rule name the line of the node, not of the caller.
class NodeSite {
 public:
  explicit NodeSite(const Node& node)
      : site_(t_state.site), layer_(t_state.layer) {
    t_state.layer = nullptr;
    t_state.site = node.sources.empty() ? Site{} : node.sources.front().site;
  }
  ~NodeSite() {
    t_state.site = site_;
    t_state.layer = layer_;
  }
  NodeSite(const NodeSite&) = delete;
  NodeSite& operator=(const NodeSite&) = delete;

 private:
  Site site_;
  const char* layer_;
};

}  // namespace

void Graph::infer() {
  std::vector<SpecView> in;
  for (Node& node : nodes) {
    if (node.op->infer() == nullptr) continue;  // declared in text only
    in.clear();
    for (const ValueRef v : node.inputs) in.push_back(spec(v).view());
    const NodeSite site(node);
    if (node.op->kind() == OpKind::kControl) infer_bodies(node, in);
    node.outputs.assign(
        static_cast<size_t>(node.op->num_outputs(node.attrs.get())), {});
    infer_outputs(*node.op, node.attrs.get(), in, node.outputs);
  }
}

}  // namespace berth
