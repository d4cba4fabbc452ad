// The simulator on random graphs, compared with a slow one that steps through
// every microsecond and counts the live bytes at each.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "base/random_cases_testing.h"
#include "op/op_registry.h"
#include "simulate/simulate.h"
#include "simulate/step_timer.h"

namespace berth {
namespace {

using Random = std::mt19937;

int pick(Random& r, int n) {
  return std::uniform_int_distribution<int>(0, n - 1)(r);
}

struct Sample {
  Graph graph;
  CostTable costs;
  PlacePlan plan;
};

const OpDef& any_op() {
  static const std::shared_ptr<const OpDef> op = [] {
    OpBuilder b(nullptr, "Any");
    b.any_inputs("x", kAnyType).output("y...");
    return b.detach();
  }();
  return *op;
}

// Adds a node with a number of outputs. Sizes are in the costs.
void add_node(Sample& s, const OpDef& op, std::vector<ValueRef> in,
              int num_outputs) {
  Node n;
  n.name = fmt::format("n{}", s.graph.size());
  n.op = &op;
  n.inputs = std::move(in);
  for (int o = 0; o < num_outputs; ++o) {
    n.outputs.push_back({float32, Shape({1 << 20})});
  }
  s.graph.add(std::move(n));
}

std::vector<ValueRef> some_values(Random& r, const Graph& g, int most) {
  std::vector<ValueRef> in;
  const int n = g.size() == 0 ? 0 : pick(r, most + 1);
  for (int k = 0; k < n; ++k) {
    const int32_t back = 1 + pick(r, std::min(g.size(), 8));
    const int32_t p = g.size() - back;
    const auto outputs = static_cast<int>(g[p].outputs.size());
    if (outputs > 0) in.push_back({p, pick(r, outputs)});
  }
  return in;
}

// A random feasible order of the ops.
void choose_order(Random& r, Sample& s) {
  std::vector<int> rank(s.graph.nodes.size());
  for (int32_t i = 0; i < s.graph.size(); ++i) {
    rank[i] = pick(r, 20);
    for (const ValueRef& v : s.graph[i].inputs) {
      rank[i] = std::max(rank[i], rank[v.node] + 1);
    }
    for (int32_t c : s.graph[i].controls) {
      rank[i] = std::max(rank[i], rank[c] + 1);
    }
  }
  std::vector<int32_t> order;
  for (int32_t i = 0; i < s.graph.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tie(rank[a], a) < std::tie(rank[b], b);
  });
  for (int32_t i : order) {
    if (s.graph[i].op == &any_op()) s.plan.sequence.push_back(i);
  }
}

Machine random_machine(Random& r) {
  const int devices = 1 + pick(r, 4);
  Machine m;
  m.classes.resize(2);
  for (int d = 0; d < devices; ++d) {
    const auto rule = static_cast<CopyRule>(pick(r, 4));
    m.devices.push_back({fmt::format("d{}", d), pick(r, 2), 0, rule});
  }
  for (int l = 0; l < devices * devices; ++l) {
    m.links.push_back({static_cast<double>(pick(r, 3)), 1, pick(r, 3) - 1,
                       CostOrigin::kDeclared});
  }
  return m;
}

Sample random_sample(unsigned seed) {
  Random r(seed);
  Sample s;
  static_cast<Machine&>(s.costs) = random_machine(r);
  const auto devices = static_cast<int>(s.costs.devices.size());
  const int n = 2 + pick(r, 40);
  for (int k = 0; k < n; ++k) {
    const int kind = pick(r, 10);
    std::vector<ValueRef> in = some_values(r, s.graph, 3);
    if (kind == 0) {
      add_node(s, op_named("_Arg"), {}, 1);
    } else if (kind <= 2 && !in.empty()) {
      add_node(s, op_named("Identity"), {in[0]}, 1);
    } else {
      add_node(s, any_op(), std::move(in), pick(r, 3));
    }
    Node& node = s.graph.nodes.back();
    if (kind > 0 && pick(r, 4) == 0 && k > 0) node.controls = {pick(r, k)};
    s.plan.device.push_back(pick(r, devices));
  }
  for (int k = pick(r, 3); k > 0; --k) {
    for (const ValueRef& v : some_values(r, s.graph, 1)) {
      s.graph.outputs.push_back(v);
    }
  }
  const Machine m = s.costs;
  s.costs = estimate_costs(s.graph, m);
  for (int32_t i = 0; i < s.graph.size(); ++i) {
    for (int64_t& b : s.costs.bytes[i]) b = 1 + pick(r, 9);
    for (int c = 0; c < 2; ++c) {
      s.costs.times[2 * i + c].us = 1 + pick(r, 9);
      s.costs.workspace[2 * i + c] = pick(r, 3);
    }
  }
  choose_order(r, s);
  return s;
}

// The rules of simulate.h, read naively: one list of all ops and copies; in
// each microsecond a resource goes to the first item in the list that still
// wants it.
class Slow {
 public:
  explicit Slow(const Sample& s) : s_(s), g_(s.graph) {
    start.assign(g_.nodes.size(), -1);
    end.assign(g_.nodes.size(), -1);
  }

  struct Copy {
    ValueRef value;
    int to = 0;
    int start = -1, end = -1;
  };

  void run() {
    make_list();
    for (t_ = 0; !done(); ++t_) {
      settle();
      for (const Item& i : list_) try_start(i);
      ASSERT_LT(t_, 100000);
    }
    for (const Copy& c : copies) step = std::max(step, c.end);
    for (const int e : end) step = std::max(step, e);
  }

  std::vector<int> start, end;  // per node
  std::vector<Copy> copies;
  int step = 0;

 private:
  struct Item {
    int32_t op = -1;
    size_t copy = 0;
  };

  int dev(int32_t node) const { return s_.plan.device[node]; }
  CopyRule rule(int d) const { return s_.costs.devices[d].copies; }
  bool eager(int d) const {
    return rule(d) == CopyRule::kOverlap || rule(d) == CopyRule::kFree;
  }
  bool is_op(int32_t i) const { return g_[i].op == &any_op(); }
  bool is_arg(int32_t i) const { return g_[i].op->name() == "_Arg"; }
  std::set<std::pair<int32_t, int32_t>> reads(int32_t i) const {
    std::set<std::pair<int32_t, int32_t>> values;
    for (const ValueRef& v : g_[i].inputs) values.insert({v.node, v.output});
    return values;
  }
  int find(ValueRef v, int to) const {
    for (size_t k = 0; k < copies.size(); ++k) {
      if (copies[k].value == v && copies[k].to == to) {
        return static_cast<int>(k);
      }
    }
    return -1;
  }

  // --- The list.

  void make_list() {
    // The op that each node without time comes after; -1: before all.
    std::vector<int> stand(g_.nodes.size(), -1);
    for (size_t k = 0; k < s_.plan.sequence.size(); ++k) {
      stand[s_.plan.sequence[k]] = static_cast<int>(k);
    }
    for (int32_t i = 0; i < g_.size(); ++i) {
      if (is_op(i)) continue;
      for (const ValueRef& v : g_[i].inputs) {
        stand[i] = std::max(stand[i], stand[v.node]);
      }
      for (const int32_t c : g_[i].controls) {
        stand[i] = std::max(stand[i], stand[c]);
      }
    }
    const auto ops = static_cast<int>(s_.plan.sequence.size());
    for (int k = -1; k < ops; ++k) {
      if (k >= 0) {
        need_inputs(s_.plan.sequence[k]);
        list_.push_back({s_.plan.sequence[k], 0});
      }
      for (int32_t i = 0; i < g_.size(); ++i) {
        if (stand[i] == k) send(i);
      }
    }
    for (int32_t i = 0; i < g_.size(); ++i) {
      if (!is_op(i)) need_inputs(i);
    }
  }

  // Copies that come right after a node.
  void send(int32_t node) {
    const auto outputs = static_cast<int32_t>(g_[node].outputs.size());
    for (int32_t o = 0; o < outputs; ++o) {
      std::set<int> to;
      for (int32_t r = 0; r < g_.size(); ++r) {
        if (reads(r).contains({node, o}) && eager(dev(r))) to.insert(dev(r));
      }
      to.erase(dev(node));
      for (const int d : to) need({node, o}, d);
    }
  }

  void need_inputs(int32_t node) {
    for (const auto& [n, o] : reads(node)) need({n, o}, dev(node));
    for (const int32_t c : g_[node].controls) {
      if (!is_op(c)) need_inputs(c);
    }
  }

  // Adds to the list the copies that bring a value to a device.
  void need(ValueRef v, int d) {
    if (dev(v.node) != d && find(v, d) >= 0) return;
    if (!is_op(v.node)) need_inputs(v.node);
    if (dev(v.node) == d) return;
    list_.push_back({-1, copies.size()});
    copies.push_back({v, d});
  }

  // --- Time.

  bool done() const {
    return std::all_of(end.begin(), end.end(),
                       [&](int e) { return 0 <= e && e < t_; }) &&
           std::all_of(copies.begin(), copies.end(),
                       [&](const Copy& c) { return 0 <= c.end && c.end < t_; });
  }

  bool ended(int32_t node) const { return 0 <= end[node] && end[node] <= t_; }
  bool there(ValueRef v, int d) const {
    if (dev(v.node) == d) return ended(v.node);
    const int c = find(v, d);
    return c >= 0 && copies[c].end >= 0 && copies[c].end <= t_;
  }
  bool has_inputs(int32_t node) const {
    return std::all_of(
               g_[node].inputs.begin(), g_[node].inputs.end(),
               [&](const ValueRef& v) { return there(v, dev(node)); }) &&
           std::all_of(g_[node].controls.begin(), g_[node].controls.end(),
                       [&](int32_t c) { return ended(c); });
  }

  void settle() {
    for (int32_t i = 0; i < g_.size(); ++i) {
      if (is_op(i) || end[i] >= 0 || !(is_arg(i) || has_inputs(i))) continue;
      start[i] = end[i] = t_;
    }
  }

  std::set<std::string> wants(const Item& i) const {
    if (i.op >= 0) return {fmt::format("device{}", dev(i.op))};
    const Copy& c = copies[i.copy];
    const int from = dev(c.value.node);
    std::set<std::string> w;
    if (rule(c.to) == CopyRule::kFree) return w;
    w.insert(fmt::format(
        "{}{}", rule(c.to) == CopyRule::kOverlap ? "copy" : "device", c.to));
    if (rule(from) == CopyRule::kBoth) w.insert(fmt::format("device{}", from));
    for (const int n : s_.costs.link(from, c.to).shared) {
      w.insert(fmt::format("link{}", n));
    }
    return w;
  }
  int start_of(const Item& i) const {
    return i.op >= 0 ? start[i.op] : copies[i.copy].start;
  }
  int end_of(const Item& i) const {
    return i.op >= 0 ? end[i.op] : copies[i.copy].end;
  }

  // No earlier item in the list still wants, or has, what this one wants.
  bool has_turn(const Item& item) const {
    const std::set<std::string> mine = wants(item);
    for (const Item& i : list_) {
      if (i.op == item.op && (i.op >= 0 || i.copy == item.copy)) return true;
      if (end_of(i) >= 0 && end_of(i) <= t_) continue;
      for (const std::string& w : wants(i)) {
        if (mine.contains(w)) return false;
      }
    }
    return true;
  }

  void try_start(const Item& i) {
    if (start_of(i) >= 0 || !has_turn(i)) return;
    if (i.op >= 0) {
      if (!has_inputs(i.op)) return;
      start[i.op] = t_;
      end[i.op] = t_ + static_cast<int>(s_.costs.time(i.op, dev(i.op)).us);
      return;
    }
    Copy& c = copies[i.copy];
    if (!ended(c.value.node)) return;
    const int64_t bytes = s_.costs.bytes_of(c.value);
    c.start = t_;
    c.end = t_ + static_cast<int>(
                     s_.costs.link(dev(c.value.node), c.to).time_us(bytes));
  }

  const Sample& s_;
  const Graph& g_;
  std::vector<Item> list_;
  int t_ = 0;
};

const auto kSeeds = static_cast<unsigned>(testing::random_cases(400));

TEST(SimulateRandom, AgreesWithTheSlowOne) {
  int copies = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = random_sample(seed);
    const Simulation fast = simulate(SimulatedGraph(s.graph), s.costs, s.plan);
    Slow slow(s);
    slow.run();
    ASSERT_EQ(fast.step_us, slow.step) << "seed " << seed;
    for (int32_t i = 0; i < s.graph.size(); ++i) {
      ASSERT_EQ(fast.start_us[i], slow.start[i]) << seed << " node " << i;
      ASSERT_EQ(fast.end_us[i], slow.end[i]) << seed << " node " << i;
    }
    ASSERT_EQ(fast.transfers.size(), slow.copies.size()) << "seed " << seed;
    for (const SimulatedTransfer& t : fast.transfers) {
      const auto it = std::find_if(
          slow.copies.begin(), slow.copies.end(),
          [&](const auto& c) { return c.value == t.value && c.to == t.to; });
      ASSERT_NE(it, slow.copies.end()) << "seed " << seed;
      ASSERT_EQ(t.start_us, it->start) << "seed " << seed;
      ASSERT_EQ(t.end_us, it->end) << "seed " << seed;
    }
    copies += static_cast<int>(slow.copies.size());
  }
  EXPECT_GT(copies, 10 * static_cast<int>(kSeeds) / 2);  // not vacuous
}

// Live bytes of every device at one microsecond, computed from the times alone.
std::vector<int64_t> live_at(const Sample& s, const Slow& slow, int t) {
  const Graph& g = s.graph;
  const auto dev = [&](int32_t i) { return s.plan.device[i]; };
  using Buffer = std::pair<ValueRef, int>;  // root, device
  // The buffer in which device d sees a value.
  const std::function<Buffer(ValueRef, int)> see = [&](ValueRef v, int d) {
    if (dev(v.node) != d) return Buffer{v, d};  // a copy
    if (g[v.node].op->name() == "Identity") return see(g[v.node].inputs[0], d);
    return Buffer{v, d};
  };
  struct Life {
    int begin = INT32_MAX, end = 0;
    int64_t bytes = 0;
  };
  std::map<Buffer, Life> lives;
  for (int32_t i = 0; i < g.size(); ++i) {
    if (g[i].op->name() == "Identity") continue;
    for (int o = 0; o < static_cast<int>(g[i].outputs.size()); ++o) {
      Life& l = lives[{{i, o}, dev(i)}];
      l.begin = slow.start[i];
      l.end = g[i].op->name() == "_Arg" ? INT32_MAX : slow.end[i];
      l.bytes = s.costs.bytes_of({i, o});
    }
  }
  for (const Slow::Copy& c : slow.copies) {
    Life& l = lives[{c.value, c.to}];
    l.begin = c.start;
    l.end = std::max(l.end, c.end);
    l.bytes = s.costs.bytes_of(c.value);
    Life& from = lives[see(c.value, dev(c.value.node))];
    from.end = std::max(from.end, c.end);
  }
  for (int32_t i = 0; i < g.size(); ++i) {
    for (const ValueRef& v : g[i].inputs) {
      Life& l = lives[see(v, dev(i))];
      l.end = std::max(l.end, slow.end[i]);
    }
  }
  for (const ValueRef& v : g.outputs) {
    lives[see(v, dev(v.node))].end = INT32_MAX;
  }
  std::vector<int64_t> live(s.costs.devices.size(), 0);
  for (const auto& [buffer, l] : lives) {
    if (l.begin <= t && t < l.end) live[buffer.second] += l.bytes;
  }
  for (int32_t i = 0; i < g.size(); ++i) {
    if (g[i].op == &any_op() && slow.start[i] <= t && t < slow.end[i]) {
      live[dev(i)] +=
          s.costs.workspace[2 * i + s.costs.devices[dev(i)].device_class];
    }
  }
  return live;
}

TEST(SimulateRandom, PeakBytesAreThoseOfBruteForceLiveness) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = random_sample(seed);
    const Simulation fast = simulate(SimulatedGraph(s.graph), s.costs, s.plan);
    Slow slow(s);
    slow.run();
    std::vector<int64_t> peak(s.costs.devices.size(), 0);
    for (int t = 0; t <= slow.step; ++t) {
      const std::vector<int64_t> live = live_at(s, slow, t);
      for (size_t d = 0; d < live.size(); ++d) {
        peak[d] = std::max(peak[d], live[d]);
      }
    }
    ASSERT_EQ(fast.peak_bytes, peak) << "seed " << seed;
  }
}

TEST(SimulateRandom, NoStepIsShorterThanItsPathsAndItsWork) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = random_sample(seed);
    const Simulation r = simulate(SimulatedGraph(s.graph), s.costs, s.plan);
    std::vector<double> work(s.costs.devices.size(), 0);
    std::vector<double> path(s.graph.nodes.size(), 0);
    for (int32_t i = 0; i < s.graph.size(); ++i) {
      const int d = s.plan.device[i];
      const double us = s.graph[i].op == &any_op() ? s.costs.time(i, d).us : 0;
      work[d] += us;
      const auto after = [&](int32_t p, double gap) {
        path[i] = std::max(path[i], path[p] + gap);
        EXPECT_GE(r.start_us[i], r.end_us[p] + gap) << "seed " << seed;
      };
      for (const ValueRef& v : s.graph[i].inputs) {
        const int from = s.plan.device[v.node];
        after(v.node, from == d
                          ? 0
                          : s.costs.link(from, d).time_us(s.costs.bytes_of(v)));
      }
      for (int32_t c : s.graph[i].controls) after(c, 0);
      path[i] += us;
      EXPECT_GE(r.step_us, path[i]);
    }
    EXPECT_EQ(r.busy_us, work) << "seed " << seed;
    for (double w : work) EXPECT_GE(r.step_us, w);
  }
}

// The graph with its nodes in another order.
Sample renumbered(const Sample& s, unsigned seed, std::vector<int32_t>& to) {
  Random r(seed);
  const Graph& g = s.graph;
  std::vector<int32_t> order;
  to.assign(g.nodes.size(), -1);
  while (order.size() < g.nodes.size()) {
    const int32_t i = pick(r, g.size());
    const auto placed = [&](int32_t p) { return to[p] >= 0; };
    const bool ready =
        std::all_of(g[i].inputs.begin(), g[i].inputs.end(),
                    [&](const ValueRef& v) { return placed(v.node); }) &&
        std::all_of(g[i].controls.begin(), g[i].controls.end(), placed);
    if (!ready || placed(i)) continue;
    to[i] = static_cast<int32_t>(order.size());
    order.push_back(i);
  }
  Sample n;
  static_cast<Machine&>(n.costs) = s.costs;
  for (const int32_t i : order) {
    Node node = g[i];
    for (ValueRef& v : node.inputs) v.node = to[v.node];
    for (int32_t& c : node.controls) c = to[c];
    n.graph.add(std::move(node));
    n.plan.device.push_back(s.plan.device[i]);
    n.costs.bytes.add(s.costs.bytes[i]);
    for (int c = 0; c < 2; ++c) {
      n.costs.times.push_back(s.costs.times[2 * i + c]);
      n.costs.workspace.push_back(s.costs.workspace[2 * i + c]);
    }
  }
  for (ValueRef v : g.outputs)
    n.graph.outputs.push_back({to[v.node], v.output});
  for (const int32_t i : s.plan.sequence) n.plan.sequence.push_back(to[i]);
  return n;
}

TEST(SimulateRandom, NumbersOfNodesMeanNothing) {
  int compared = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Sample s = random_sample(seed);
    Random r(seed + 1000);
    std::uniform_real_distribution<double> share(0.5, 1.5);
    for (OpTime& t : s.costs.times) t.us *= share(r);
    const Simulation a = simulate(SimulatedGraph(s.graph), s.costs, s.plan);
    std::vector<int32_t> to;
    const Sample n = renumbered(s, seed, to);
    const Simulation b = simulate(SimulatedGraph(n.graph), n.costs, n.plan);
    // Numbers break ties between copies at one position in the plan: of
    // arguments, of aliases, of inputs of one op.
    const SimulatedGraph graph(s.graph);
    StepTimer timer(graph, s.costs);
    timer.run(s.plan);
    bool tied = false;
    std::map<int32_t, int32_t> producer_at;
    for (const StepTimer::Event& e : timer.events()) {
      if (e.to < 0) continue;
      const int32_t producer = graph.producer[e.number];
      const auto [it, first] = producer_at.emplace(e.position, producer);
      tied |= it->second != producer;
    }
    if (tied) continue;
    ++compared;
    ASSERT_EQ(a.step_us, b.step_us) << "seed " << seed;
    ASSERT_EQ(a.peak_bytes, b.peak_bytes) << "seed " << seed;
    for (int32_t i = 0; i < s.graph.size(); ++i) {
      ASSERT_EQ(a.start_us[i], b.start_us[to[i]]) << "seed " << seed;
    }
  }
  EXPECT_GT(compared, static_cast<int>(kSeeds) / 5);
}

TEST(SimulateRandom, MovedOpsAlwaysHaveAPrice) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const Sample s = random_sample(seed);
    const SimulatedGraph graph(s.graph);
    Random r(seed);
    const int32_t node = pick(r, s.graph.size());
    const auto devices = static_cast<int>(s.costs.devices.size());
    const int32_t to = pick(r, devices);
    const Price p = price_move(graph, s.costs, s.plan, {{node}}, to);
    EXPECT_GE(p.step_us, 0);
    if (to == s.plan.device[node]) {
      EXPECT_EQ(p.delta_bytes, 0) << "seed " << seed;
      EXPECT_EQ(p.delta_us, 0) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth
