#include "passes/fuse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>

#include "berth/half.h"
#include "expr/expr.h"
#include "graph/node_part.h"
#include "passes/constants.h"
#include "passes/forward.h"

namespace berth {

namespace {

using expr::Expr;

// Nodes apart that still count as neighbours: joining values that are far
// apart would keep their operands alive in between.
constexpr int32_t kMaxDistance = 128;

bool known(const Shape& s) {
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] < 0) return false;
  }
  return true;
}

// The number that a scalar constant holds, when a constant of an expression
// can stand for it.
std::optional<double> scalar_of(const Graph& graph, ValueRef v) {
  const Tensor* t = constant_of(graph, v);
  if (t == nullptr || t->shape().rank() > 0) return std::nullopt;
  double x = 0;
  switch (t->dtype()) {
    case DType::kFloat32:
      x = t->item<float>();
      break;
    case DType::kFloat64:
      x = t->item<double>();
      break;
    case DType::kInt32:
      x = t->item<int32_t>();
      break;
    case DType::kBFloat16:
      x = static_cast<float>(t->item<bfloat16_t>());
      break;
    case DType::kFloat16:
      x = static_cast<float>(t->item<float16_t>());
      break;
    default:
      return std::nullopt;
  }
  if (x != x) return std::nullopt;  // a NaN's bits are not in its text
  return x;
}

struct Group {
  std::vector<int32_t> members;  // ascending
  // Where its last member stands in the order of Grouping::find_order().
  int32_t place = 0;

  int32_t first() const { return members.front(); }
  int32_t last() const { return members.back(); }
};

class Grouping {
 public:
  using MayFuse = std::function<bool(DeviceId, DType)>;
  Grouping(const Graph& graph, const MayFuse& ok)
      : graph_(graph), users_(graph.users()) {
    group_.resize(graph.nodes.size());
    std::iota(group_.begin(), group_.end(), 0);
    groups_.resize(graph.nodes.size());
    for (int32_t i = 0; i < graph.size(); ++i) groups_[i].members = {i};
    find_candidates(ok);
    find_order();
    returned_.assign(graph.nodes.size(), false);
    for (const ValueRef& v : graph.outputs) returned_[v.node] = true;
  }

  // Joins each node with the groups that compute its operands.
  void grow() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!candidate_[i]) continue;
      for (const ValueRef& v : graph_[i].inputs) try_join(i, v.node);
    }
  }

  const Group& group_of(int32_t node) const { return groups_[group_[node]]; }

  // What a group reads from outside, in order of first use, without the
  // constants that become part of the expression.
  std::vector<ValueRef> inputs_of(const Group& g) const {
    std::vector<ValueRef> in;
    for (const int32_t m : g.members) {
      for (const ValueRef& v : graph_[m].inputs) {
        if (group_[v.node] == group_[m] || scalar_of(graph_, v)) continue;
        if (std::find(in.begin(), in.end(), v) == in.end()) in.push_back(v);
      }
    }
    return in;
  }

  // Members that somebody outside reads, the last one first.
  std::vector<int32_t> outputs_of(const Group& g) const {
    std::vector<int32_t> out;
    for (auto m = g.members.rbegin(); m != g.members.rend(); ++m) {
      bool outside = returned_[*m];
      for (const int32_t u : users_[*m]) outside |= group_[u] != group_[*m];
      if (outside) out.push_back(*m);
    }
    return out;
  }

 private:
  void find_candidates(const MayFuse& ok) {
    candidate_.assign(graph_.nodes.size(), false);
    std::vector<bool> ordered(graph_.nodes.size(), false);
    for (const Node& n : graph_.nodes) {
      for (const int32_t c : n.controls) ordered[c] = true;
    }
    std::unordered_map<DeviceId, DTypeSet> devices;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      if (ordered[i] || !n.controls.empty() || !is_elementwise(n)) continue;
      const auto [it, fresh] = devices.try_emplace(n.assigned, DTypeSet{0});
      for (const DType d : {float32, bfloat16, float16}) {
        if (fresh && ok(n.assigned, d)) it->second |= dtype_bit(d);
      }
      candidate_[i] = (asked_of(n) & ~it->second) == 0;
    }
  }

  // What `ok` is asked of a node.
  DTypeSet asked_of(const Node& n) const {
    DTypeSet types = dtype_bit(n.outputs[0].dtype);
    for (const ValueRef& v : n.inputs) types |= dtype_bit(graph_.spec(v).dtype);
    return (types & kHalfTypes) | dtype_bit(float32);
  }

  bool is_elementwise(const Node& n) const {
    if (n.op->kind() != OpKind::kCompute || !n.op->elementwise() ||
        n.op->stateful() || n.op->random() || n.outputs.size() != 1) {
      return false;
    }
    const Shape& shape = n.outputs[0].shape;
    if (!known(shape)) return false;
    // With slices: as on one device.
    if (static_cast<double>(shape.num_elements()) *
            whole_over_part(n.part.get()) <
        static_cast<double>(kMinFusedElements)) {
      return false;
    }
    std::vector<DType> in;
    for (const ValueRef& v : n.inputs) in.push_back(graph_.spec(v).dtype);
    return expr::can_lower(*n.op, n.attrs.get(), in, n.outputs[0].dtype);
  }

  bool alike(int32_t a, int32_t b) const {
    const Node &x = graph_[a], &y = graph_[b];
    return candidate_[a] && candidate_[b] && x.assigned == y.assigned &&
           x.outputs[0].shape == y.outputs[0].shape && x.replica == y.replica &&
           same_slices(x.part.get(), y.part.get());
  }

  void try_join(int32_t user, int32_t producer) {
    const int32_t a = group_[user], b = group_[producer];
    if (a == b || !alike(user, producer)) return;
    Group joined;
    const Group &x = groups_[a], &y = groups_[b];
    std::merge(x.members.begin(), x.members.end(), y.members.begin(),
               y.members.end(), std::back_inserter(joined.members));
    if (joined.last() - joined.first() > kMaxDistance) return;
    joined.place = std::max(x.place, y.place);
    for (const int32_t m : y.members) group_[m] = a;
    if (!fits(joined) || !before_readers(joined, a)) {
      for (const int32_t m : y.members) group_[m] = b;
      return;
    }
    groups_[a] = std::move(joined);
    groups_[b].members.clear();
  }

  bool fits(const Group& g) const {
    constexpr int kValuesPerOp = 3;  // an op and what its attributes add
    const auto inputs = inputs_of(g);
    int values = static_cast<int>(inputs.size());
    for (const int32_t m : g.members) {
      values += kValuesPerOp;
      for (const ValueRef& v : graph_[m].inputs) {
        values += scalar_of(graph_, v).has_value();
      }
    }
    return static_cast<int>(inputs.size()) <= expr::kMaxInputs &&
           static_cast<int>(outputs_of(g).size()) <= expr::kMaxOutputs &&
           values <= expr::kMaxValues;
  }

  // Another order in which the nodes could run: what may be fused stands as
  // early as it can, close to its operands and before other readers of them.
  void find_order() {
    std::vector<int32_t> missing(graph_.nodes.size(), 0);
    for (const auto& users : users_) {
      for (const int32_t u : users) ++missing[u];
    }
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready[2];
    const auto add = [&](int32_t i) { ready[candidate_[i] ? 0 : 1].push(i); };
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (missing[i] == 0) add(i);
    }
    int32_t place = 0;
    while (!ready[0].empty() || !ready[1].empty()) {
      auto& queue = ready[ready[0].empty() ? 1 : 0];
      const int32_t i = queue.top();
      queue.pop();
      groups_[i].place = place++;
      for (const int32_t u : users_[i]) {
        if (--missing[u] == 0) add(u);
      }
    }
  }

  // Groups stand at their last members' places. As long as each comes before
  // all who read it, no two wait for each other.
  bool before_readers(const Group& g, int32_t id) const {
    for (const int32_t m : g.members) {
      for (const int32_t u : users_[m]) {
        if (group_[u] != id && groups_[group_[u]].place <= g.place) {
          return false;
        }
      }
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<std::vector<int32_t>> users_;
  std::vector<bool> candidate_, returned_;
  std::vector<int32_t> group_;  // by node; a group has the number of a member
  std::vector<Group> groups_;
};

// Builds the graph in which each group is one node.
class Fusing {
 public:
  Fusing(Graph& graph, const Grouping& groups)
      : graph_(graph), groups_(groups) {
    values_.resize(graph.nodes.size());
    node_.assign(graph.nodes.size(), -1);
  }

  void run() {
    // A group stands where its last member stood; what it needs and does not
    // stand before it yet is moved up.
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (groups_.group_of(i).last() == i) emit_with_needs(i);
    }
    for (Node& n : nodes_) {
      if (n.follows >= 0) n.follows = node_[n.follows];
    }
    for (ValueRef& v : graph_.outputs) v = value(v);
    for (int32_t& a : graph_.args) a = node_[a];
    const std::vector<bool> keep = needed();
    graph_.nodes = std::move(nodes_);
    graph_.compact(keep);
  }

 private:
  // Constants that are now part of expressions go.
  std::vector<bool> needed() const {
    std::vector<bool> keep(nodes_.size(), true);
    std::vector<bool> read(nodes_.size(), false);
    for (const Node& n : nodes_) {
      for (const ValueRef& v : n.inputs) read[v.node] = true;
      for (const int32_t c : n.controls) read[c] = true;
    }
    for (const ValueRef& v : graph_.outputs) read[v.node] = true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].op->kind() == OpKind::kConstant) keep[i] = read[i];
    }
    return keep;
  }

  ValueRef value(ValueRef v) const { return values_[v.node][v.output]; }

  void emit_with_needs(int32_t i) {
    std::vector<int32_t> open{i};
    while (!open.empty()) {
      const Group& g = groups_.group_of(open.back());
      if (node_[g.last()] >= 0) {
        open.pop_back();
        continue;
      }
      const size_t before = open.size();
      for (const int32_t m : g.members) {
        const auto need = [&](int32_t n) {
          if (node_[n] < 0 && &groups_.group_of(n) != &g) open.push_back(n);
        };
        for (const ValueRef& v : graph_[m].inputs) need(v.node);
        for (const int32_t c : graph_[m].controls) need(c);
      }
      if (open.size() > before) continue;
      open.pop_back();
      if (g.members.size() == 1) {
        keep(g.last());
      } else {
        emit_fused(g);
      }
    }
  }

  void keep(int32_t i) {
    Node node = graph_[i];
    for (ValueRef& v : node.inputs) v = value(v);
    for (int32_t& c : node.controls) c = node_[c];
    std::sort(node.controls.begin(), node.controls.end());
    node_[i] = static_cast<int32_t>(nodes_.size());
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      values_[i].push_back({node_[i], static_cast<int32_t>(o)});
    }
    nodes_.push_back(std::move(node));
  }

  void emit_fused(const Group& g) {
    static const OpDef& op = op_named("_Fused");
    const Node& last = graph_[g.last()];
    Node node;
    node.op = &op;
    node.name = unique_name(graph_, last.name + "/fused");
    node.requested = last.requested;
    node.assigned = last.assigned;
    node.replica = last.replica;
    node.collective = last.collective;
    node.part = slices_of(last.part);
    const auto inputs = groups_.inputs_of(g);
    const auto outputs = groups_.outputs_of(g);
    const Expr e = expression(g, inputs, outputs);
    std::vector<std::string> types;
    const auto id = static_cast<int32_t>(nodes_.size());
    for (const ValueRef& v : inputs) node.inputs.push_back(value(v));
    for (const int32_t m : outputs) {
      types.emplace_back(name_of(graph_[m].outputs[0].dtype));
      values_[m] = {{id, static_cast<int32_t>(node.outputs.size())}};
      node.outputs.push_back(graph_[m].outputs[0]);
    }
    for (const int32_t m : g.members) {
      node_[m] = id;
      add_sources(node, graph_[m].sources);
    }
    node.attrs =
        AttrsRef({{"expr", e.str()}, {"types", types}, {"flops", e.flops()}});
    nodes_.push_back(std::move(node));
  }

  Expr expression(const Group& g, const std::vector<ValueRef>& inputs,
                  const std::vector<int32_t>& outputs) const {
    Expr e;
    std::map<ValueRef, int> number;
    for (const ValueRef& v : inputs) number[v] = e.input(graph_.spec(v).dtype);
    for (const int32_t m : g.members) {
      std::vector<int> args;
      for (const ValueRef& v : graph_[m].inputs) {
        const auto [it, fresh] = number.try_emplace(v, -1);
        if (fresh) {
          it->second = e.constant(graph_.spec(v).dtype, *scalar_of(graph_, v));
        }
        args.push_back(it->second);
      }
      number[{m, 0}] = *expr::lower(e, *graph_[m].op, graph_[m].attrs.get(),
                                    args, graph_[m].outputs[0].dtype);
    }
    for (const int32_t m : outputs) e.output(number[{m, 0}]);
    return e;
  }

  Graph& graph_;
  const Grouping& groups_;
  std::vector<Node> nodes_;
  std::vector<std::vector<ValueRef>> values_;
  std::vector<int32_t> node_;  // the new node of an old one
};

}  // namespace

bool fuse(Graph& graph,
          const std::function<bool(DeviceId device, DType dtype)>& may_fuse) {
  Grouping groups(graph, may_fuse);
  groups.grow();
  bool any = false;
  for (int32_t i = 0; i < graph.size(); ++i) {
    any |= groups.group_of(i).members.size() > 1;
  }
  if (any) Fusing(graph, groups).run();
  return any;
}

}  // namespace berth
