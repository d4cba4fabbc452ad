#include "passes/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "op/op_registry.h"
#include "passes/recompute_choice.h"

namespace berth {

namespace {

// The latest result of its own device that node i reads, but of a copy.
ValueRef known_before(const Graph& graph, const Drops& drops, int32_t i) {
  ValueRef latest;
  for (const ValueRef v : graph[i].inputs) {
    const auto& cuts = drops.cuts[static_cast<size_t>(v.node)];
    if (v.node > latest.node && copy_read(cuts, i) == 0 &&
        !graph[v.node].op->graph_only() &&
        graph[v.node].assigned == graph[i].assigned) {
      latest = v;
    }
  }
  return latest;
}

// Writes the nodes of a graph anew, with copies among them.
class Rewriter {
 public:
  Rewriter(Graph& graph, const RecomputeCosts& costs, const Drops& drops)
      : graph_(graph),
        costs_(costs),
        drops_(drops),
        now_(graph.nodes.size()),
        on_host_(graph.nodes.size(), -1) {}

  Recomputed run() {
    Recomputed result;
    const std::vector<NodeCopy> copies = copies_of(readers_of(graph_), drops_);
    std::vector<std::vector<int32_t>> leaving(graph_.nodes.size());
    auto next = copies.begin();
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const ValueRef after = known_before(graph_, drops_, i);
      for (; next != copies.end() && next->position == i; ++next) {
        add_copy(*next, after);
        const Node& n = graph_[next->node];
        if (n.op->kind() == OpKind::kAlias) continue;
        (drops_.away[at(next->node)] ? result.away : result.names)
            .push_back(n.name);
      }
      Node n = graph_[i];
      for (ValueRef& v : n.inputs) v = reads(v, i);
      for (int32_t& c : n.controls) c = now_[at(c)][0];
      for (const int32_t left : leaving[at(i)]) {
        n.controls.push_back(on_host_[at(left)]);
      }
      std::sort(n.controls.begin(), n.controls.end());
      add(i, std::move(n));
      if (!drops_.away[at(i)]) continue;
      if (graph_[i].assigned == costs_.host) {
        on_host_[at(i)] = now_[at(i)][0];
        continue;
      }
      on_host_[at(i)] = static_cast<int32_t>(nodes_.size());
      nodes_.push_back(on_host({now_[at(i)][0], 0}, graph_[i].name + "/away"));
      leaving[at(waits_for_leaving(graph_, costs_, drops_.cuts[at(i)][0]))]
          .push_back(i);
    }
    for (int32_t& a : graph_.args) a = now_[at(a)][0];
    for (ValueRef& v : graph_.outputs) v.node = now_[at(v.node)][0];
    for (Node& n : nodes_) {
      if (n.follows >= 0) n.follows = now_[at(n.follows)][0];
    }
    graph_.nodes = std::move(nodes_);
    return result;
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }

  // The value of the new graph that a reader at a position of the old one
  // reads.
  ValueRef reads(ValueRef v, int32_t position) const {
    const auto copy = at(copy_read(drops_.cuts[at(v.node)], position));
    return {now_[at(v.node)][copy], v.output};
  }

  void add(int32_t i, Node n) {
    now_[at(i)].push_back(static_cast<int32_t>(nodes_.size()));
    nodes_.push_back(std::move(n));
  }

  // `v` of the new graph in host memory.
  Node on_host(ValueRef v, const std::string& name) const {
    static const OpDef& op = op_named("Identity");
    Node n;
    n.name = unique_name(graph_, name);
    n.op = &op;
    n.inputs = {v};
    n.outputs = {nodes_[at(v.node)].outputs[at(v.output)]};
    n.assigned = costs_.host;
    n.sources = nodes_[at(v.node)].sources;
    return n;
  }

  // A copy waits for what its first reader reads besides: so it does not run
  // early, nor does it become the node itself where equal nodes are joined.
  void add_copy(const NodeCopy& copy, ValueRef after) {
    // Copies that nobody reads have no number in the new graph.
    now_[at(copy.node)].resize(at(copy.number), -1);
    Node n = graph_[copy.node];
    if (drops_.away[at(copy.node)]) {
      if (graph_[copy.position].assigned == costs_.host) {
        now_[at(copy.node)].push_back(on_host_[at(copy.node)]);
        return;
      }
      Node back = on_host({on_host_[at(copy.node)], 0}, n.name + "/back");
      if (after.node >= 0) back.controls = {reads(after, copy.position).node};
      add(copy.node, std::move(back));
      return;
    }
    n.name = unique_name(
        graph_,
        fmt::format("{}/again{}", n.name,
                    copy.number > 1 ? fmt::format("_{}", copy.number) : ""));
    n.controls.clear();
    n.follows = copy.node;
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      const ValueRef v = n.inputs[k];
      const bool itself =
          copy_read(drops_.cuts[at(v.node)], copy.position) == 0;
      const bool fixed = graph_[v.node].op->kind() == OpKind::kConstant ||
                         graph_.spec(v).dtype == resource;
      n.inputs[k] = reads(v, copy.position);
      if (itself && !fixed && after.node >= 0 && after.node > v.node) {
        n.inputs[k] = behind(n.inputs[k], reads(after, copy.position), n, k);
      }
    }
    add(copy.node, std::move(n));
  }

  // `v` of the new graph, once `after` is known, for an input of a copy.
  ValueRef behind(ValueRef v, ValueRef after, const Node& copy, size_t input) {
    static const OpDef& op = op_named("_Behind");
    Node n;
    n.name = unique_name(graph_, fmt::format("{}/kept_{}", copy.name, input));
    n.op = &op;
    n.inputs = {v, after};
    n.outputs = {nodes_[at(v.node)].outputs[at(v.output)]};
    n.assigned = copy.assigned;
    n.sources = copy.sources;
    n.replica = copy.replica;
    nodes_.push_back(std::move(n));
    return {static_cast<int32_t>(nodes_.size()) - 1, 0};
  }

  Graph& graph_;
  const RecomputeCosts& costs_;
  const Drops& drops_;
  std::vector<std::vector<int32_t>> now_;  // per node: it and its copies
  std::vector<int32_t> on_host_;           // per node: where it is away
  std::vector<Node> nodes_;
};

}  // namespace

void stream_from_host(Graph& graph, const RecomputeCosts& costs) {
  const std::vector<std::vector<int32_t>> readers = readers_of(graph);
  Drops drops{std::vector<std::vector<int32_t>>(graph.nodes.size()),
              std::vector<bool>(graph.nodes.size(), false)};
  const auto cut = [&](int32_t i, int32_t position) {
    drops.cuts[static_cast<size_t>(i)] = {position};
    drops.away[static_cast<size_t>(i)] = true;
  };
  std::set<int32_t> results;
  for (const ValueRef v : graph.outputs) results.insert(v.node);
  std::array<int32_t, 2> known = {-1, -1};  // before the reads before
  for (int32_t i = 0; i < graph.size(); ++i) {
    Node& n = graph[i];
    const std::vector<int32_t>& by = readers[static_cast<size_t>(i)];
    if (by.empty() || n.outputs.size() != 1 || results.contains(i)) continue;
    if (n.op->kind() == OpKind::kReadVariable && n.assigned == costs.host) {
      if (known[0] >= 0 && known[0] < i) n.controls.push_back(known[0]);
      std::sort(n.controls.begin(), n.controls.end());
      known = {known[1], known_before(graph, drops, by[0]).node};
      int32_t longest = 1, last = -1;
      for (size_t k = 1; k < by.size(); ++k) {
        if (by[k] - by[k - 1] <= longest) continue;
        longest = by[k] - by[k - 1];
        last = by[k - 1];
      }
      if (last >= 0) cut(i, last);
    } else if (n.op->kind() == OpKind::kCompute &&
               costs.counted[static_cast<size_t>(i)] &&
               waits_for_leaving(graph, costs, i) < graph.size() &&
               std::all_of(by.begin(), by.end(), [&](int32_t r) {
                 return graph[r].assigned == costs.host;
               })) {
      cut(i, i);
    }
  }
  Rewriter(graph, costs, drops).run();
}

Recomputed recompute(Graph& graph, const RecomputeCosts& costs, int64_t limit) {
  const Choice choice = choose_drops(graph, costs, limit);
  Recomputed result = Rewriter(graph, costs, choice.drops).run();
  result.us = choice.us;
  result.bytes = choice.bytes;
  return result;
}

}  // namespace berth
