#include "planner/exact_steps.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/infinity.h"
#include "planner/step_units.h"
#include "simulate/copy_route.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

// A tiny problem as arrays. Ops that take time are numbered 0 to n - 1, none
// before what it waits for; sources are values that are there from the start.
struct ExactGraph {
  explicit ExactGraph(const StepUnits& of) : units(of), p(of.problem) {
    const SimulatedGraph& g = p.graph;
    op_of_node.assign(p.num_ops(), -1);
    for (const int32_t i : order_of_ops(p)) {
      op_of_node[i] = num_ops();
      node.push_back(i);
    }
    readers.resize(g.producer.size());
    for (int op = 0; op < num_ops(); ++op) {
      const int32_t i = node[op];
      unit.push_back(units.unit[i]);
      double best = kInfinity;
      for (int d = 0; d < p.num_devices(); ++d) {
        if (units.allowed[unit[op]].has(d)) best = std::min(best, us(op, d));
      }
      least.push_back(best);
      uint32_t mask = 0;
      reads.emplace_back();
      outs.emplace_back();
      const auto wait = [&](int32_t other) {
        if (op_of_node[other] >= 0) mask |= 1U << op_of_node[other];
      };
      for (const int32_t v : g.reads[i]) {
        wait(g.producer[v]);
        if (!g.everywhere[v]) reads[op].push_back(v);
        if (!g.everywhere[v]) readers[v].push_back(op);
      }
      for (const int32_t c : g.controls[i]) wait(c);
      needs.push_back(mask);
      for (const int32_t v : g.values[i]) outs[op].push_back(v);
    }
    // Sources come in the order of in-order traversal: by number.
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      if (op_of_node[i] >= 0) continue;
      for (const int32_t v : g.values[i]) source_values.push_back(v);
    }
    routes = CopyRoutes(p.costs);
    for (int d = 0; d < p.num_devices(); ++d) {
      int first = d;
      for (int e = 0; e < d && first == d; ++e) {
        if (equal_to[e] == e && alike(e, d)) first = e;
      }
      equal_to.push_back(first);
    }
  }

  int num_ops() const { return static_cast<int>(node.size()); }
  double us(int op, int device) const {
    return p.costs.time(node[op], device).us;
  }
  double copy_us(int32_t value, int from, int to) const {
    return copy_time(p, from, to, p.costs.bytes.item(value));
  }
  bool equal(int a, int b) const { return equal_to[a] == equal_to[b]; }

  const StepUnits& units;
  const PlanProblem& p;
  std::vector<int32_t> node;    // per op
  std::vector<int> op_of_node;  // -1: takes no time
  std::vector<int> unit;        // per op: index in StepUnits
  std::vector<double> least;    // per op: time on the best device
  std::vector<uint32_t> needs;  // per op: ops that it waits for, as bits
  // Per op, the values that it reads from ops and sources and that may be
  // copied, by number; and per value its producing node.
  std::vector<std::vector<int32_t>> reads;
  std::vector<std::vector<int32_t>> outs;  // per op: values that others read
  std::vector<int32_t> source_values;      // in their order
  std::vector<std::vector<int>> readers;   // per value: ops
  std::vector<int> equal_to;               // per device: the lowest equal one
  CopyRoutes routes;

 private:
  // Whether exchanging the two devices changes nothing.
  bool alike(int a, int b) const {
    const DeviceCost &x = p.costs.devices[a], &y = p.costs.devices[b];
    if (x.device_class != y.device_class || x.memory_limit != y.memory_limit ||
        x.copies != y.copies) {
      return false;
    }
    for (const DeviceSet& allowed : units.allowed) {
      if (allowed.has(a) != allowed.has(b)) return false;
    }
    const auto same = [](const LinkCost& l, const LinkCost& m) {
      return l.latency_us == m.latency_us && l.bytes_per_us == m.bytes_per_us &&
             l.shared == m.shared;
    };
    if (!same(p.costs.link(a, b), p.costs.link(b, a))) return false;
    for (int d = 0; d < p.num_devices(); ++d) {
      if (d == a || d == b) continue;
      if (!same(p.costs.link(a, d), p.costs.link(b, d)) ||
          !same(p.costs.link(d, a), p.costs.link(d, b))) {
        return false;
      }
    }
    return true;
  }
};

constexpr int kMostExactOps = 16, kMostExactDevices = 16;
// An improvement below this share is rounding.
constexpr double kExactRounding = 1e-12;
constexpr int64_t kNodesPerLook = 256;
constexpr size_t kMostExactStates = 64;  // kept per set of ops

// An item of a machine: when it can begin, its time, and what follows it.
struct ExactItem {
  double head, us, tail;
};

// No order of a machine's items ends before this: over the items that begin at
// some time or later and have at least some tail.
double machine_bound(const std::vector<ExactItem>& items, double machines) {
  double best = 0;
  for (const ExactItem& from : items) {
    for (const ExactItem& until : items) {
      double us = 0;
      for (const ExactItem& i : items) {
        if (i.head >= from.head && i.tail >= until.tail) us += i.us;
      }
      if (us > 0) {
        best = std::max(best, from.head + us / machines + until.tail);
      }
    }
  }
  return best;
}

class ExactSearch {
 public:
  ExactSearch(const StepUnits& units, const Budget& budget, int64_t most,
              Found& best)
      : g_(units), budget_(budget), most_(most), best_(best) {
    n_ = g_.num_ops();
    devices_ = g_.p.num_devices();
    device_.assign(units.num_units, -1);
    used_.assign(devices_, 0);
    held_.assign(devices_, 0);
    head_.assign(n_, 0);
    tail_.assign(n_, 0);
    // Units by their first op; those without ops come last.
    for (int op = 0; op < n_; ++op) add_unit(g_.unit[op]);
    for (int32_t u = 0; u < units.num_units; ++u) add_unit(u);
  }

  bool run() {
    assign(0);
    return !stopped_;
  }
  int64_t nodes() const { return nodes_; }

 private:
  struct State {
    std::vector<double> free;     // per resource
    std::vector<double> end;      // per op
    std::vector<double> arrived;  // [value * devices + device]; -1: not there
    double last = 0;
  };

  void add_unit(int32_t unit) {
    if (std::ranges::count(order_, unit) == 0) order_.push_back(unit);
  }

  bool stop() {
    const bool look = ++nodes_ % kNodesPerLook == 0 && !budget_.counts_moves();
    stopped_ |= nodes_ >= most_ || (look && budget_.spent(0) >= 1);
    return stopped_;
  }

  bool too_long(double us) const {
    return us >= best_.value * (1 - kExactRounding);
  }

  // --- Devices.

  void assign(size_t k) {
    if (stop() || too_long(bound_of_devices())) return;
    if (k == order_.size()) {
      find_order();
      return;
    }
    const int32_t unit = order_[k];
    std::vector<std::pair<double, int>> choices;
    for (int d = 0; d < devices_; ++d) {
      if (!g_.units.allowed[unit].has(d) || equal_before(d)) continue;
      const double limit = g_.p.costs.devices[d].memory_limit;
      if (limit > 0 && held_[d] + g_.units.held_bytes[unit] > limit) continue;
      device_[unit] = d;
      choices.emplace_back(bound_of_devices(), d);
    }
    std::sort(choices.begin(), choices.end());
    for (const auto& [bound, d] : choices) {
      if (too_long(bound)) break;
      device_[unit] = d;
      held_[d] += g_.units.held_bytes[unit];
      ++used_[d];
      assign(k + 1);
      --used_[d];
      held_[d] -= g_.units.held_bytes[unit];
      if (stopped_) break;
    }
    device_[unit] = -1;
  }

  // Whether an equal device without units comes earlier.
  bool equal_before(int device) const {
    if (used_[device] > 0) return false;
    for (int d = 0; d < device; ++d) {
      if (used_[d] == 0 && g_.equal(d, device)) return true;
    }
    return false;
  }

  int on(int op) const { return device_[g_.unit[op]]; }
  int home(int32_t value) const {
    const int32_t node = g_.p.graph.producer[value];
    return device_[g_.units.unit[node]];
  }
  double us(int op) const {
    return on(op) >= 0 ? g_.us(op, on(op)) : g_.least[op];
  }
  double copy(int32_t value, int op) const {
    const int from = home(value), to = on(op);
    return from < 0 || to < 0 || from == to ? 0 : g_.copy_us(value, from, to);
  }
  int producer(int32_t value) const {
    return g_.op_of_node[g_.p.graph.producer[value]];
  }

  // Earliest starts, and least times after the ends, by paths. Returns the
  // longest path.
  double find_heads_and_tails() {
    double longest = 0;
    for (int op = 0; op < n_; ++op) {
      double at = 0;
      for (uint32_t m = g_.needs[op]; m; m &= m - 1) {
        const int b = std::countr_zero(m);
        at = std::max(at, head_[b] + us(b));
      }
      for (const int32_t v : g_.reads[op]) {
        const int b = producer(v);
        at = std::max(at, (b < 0 ? 0 : head_[b] + us(b)) + copy(v, op));
      }
      head_[op] = at;
    }
    std::fill(tail_.begin(), tail_.end(), 0);
    for (int op = n_ - 1; op >= 0; --op) {
      const double behind = tail_[op] + us(op);
      longest = std::max(longest, head_[op] + behind);
      for (uint32_t m = g_.needs[op]; m; m &= m - 1) {
        double& tail = tail_[std::countr_zero(m)];
        tail = std::max(tail, behind);
      }
      for (const int32_t v : g_.reads[op]) {
        if (const int b = producer(v); b >= 0) {
          tail_[b] = std::max(tail_[b], behind + copy(v, op));
        }
      }
    }
    return longest;
  }

  // No plan with these devices takes less.
  double bound_of_devices() {
    double bound = find_heads_and_tails();
    if (too_long(bound)) return bound;
    std::vector<ExactItem> items;
    for (int d = -1; d < devices_; ++d) {
      items.clear();
      for (int op = 0; op < n_; ++op) {
        if (d < 0 || on(op) == d) {
          items.push_back({head_[op], us(op), tail_[op]});
        }
      }
      bound = std::max(bound, machine_bound(items, d < 0 ? devices_ : 1));
      if (d < 0 || too_long(bound)) continue;
      add_copies_to(d, items);
      bound = std::max(bound, machine_bound(items, 1));
    }
    return bound;
  }

  // Copies to a device as items of its engine, or of the device itself.
  void add_copies_to(int device, std::vector<ExactItem>& items) const {
    const CopyRule rule = g_.p.costs.devices[device].copies;
    if (comes_early(rule)) items.clear();
    if (rule == CopyRule::kFree) return;
    for (int32_t v = 0; v < static_cast<int32_t>(g_.readers.size()); ++v) {
      const int from = home(v), b = producer(v);
      if (from < 0 || from == device) continue;
      double tail = -1;
      for (const int op : g_.readers[v]) {
        if (on(op) == device) tail = std::max(tail, us(op) + tail_[op]);
      }
      if (tail < 0) continue;
      items.push_back(
          {b < 0 ? 0 : head_[b] + us(b), g_.copy_us(v, from, device), tail});
    }
  }

  // --- Orders, once all devices are known.

  void find_order() {
    State s;
    s.free.assign(g_.routes.num_resources(), 0);
    s.end.assign(n_, -1);
    s.arrived.assign(g_.readers.size() * static_cast<size_t>(devices_), -1);
    for (const int32_t v : g_.source_values) send(v, s);
    find_uses();
    known_.clear();
    sequence_.clear();
    find_heads_and_tails();
    extend(0, s);
  }

  // The machines that an op, and the copies after and before it, keep busy.
  void find_uses() {
    uses_.assign(n_, 0);
    for (int op = 0; op < n_; ++op) {
      uint64_t& uses = uses_[op] = uint64_t{1} << on(op);
      const auto add_copy = [&](int32_t value, int to) {
        const int from = home(value);
        for (const int n : g_.routes.between(from, to)) {
          uses |= uint64_t{1} << std::min(n, 2 * devices_ + n % 32);
        }
      };
      for (const int32_t v : g_.outs[op]) {
        for (const int r : g_.readers[v]) add_copy(v, on(r));
      }
      for (const int32_t v : g_.reads[op]) add_copy(v, on(op));
    }
  }

  double arrival(int32_t value, int to, State& s) const {
    const int from = home(value), b = producer(value);
    const double ready = b < 0 ? 0 : s.end[b];
    if (from == to) return ready;
    double& at = s.arrived[static_cast<size_t>(value) * devices_ + to];
    if (at >= 0) return at;
    at = g_.routes.between(from, to)
             .run(ready, g_.copy_us(value, from, to), s.free.data())
             .end_us;
    return at;
  }

  // Sends to the devices that need not stop for it.
  void send(int32_t value, State& s) const {
    uint64_t to = 0;
    for (const int r : g_.readers[value]) to |= uint64_t{1} << on(r);
    for (; to; to &= to - 1) {
      const int d = std::countr_zero(to);
      if (comes_early(g_.p.costs.devices[d].copies)) arrival(value, d, s);
    }
  }

  void append(int op, State& s) const {
    double at = 0;
    for (uint32_t m = g_.needs[op]; m; m &= m - 1) {
      at = std::max(at, s.end[std::countr_zero(m)]);
    }
    for (const int32_t v : g_.reads[op]) {
      at = std::max(at, arrival(v, on(op), s));
    }
    double& free = s.free[on(op)];
    free = s.end[op] = std::max(at, free) + us(op);
    s.last = std::max(s.last, free);
    for (const int32_t v : g_.outs[op]) send(v, s);
  }

  // No step that continues from here ends before this.
  double bound_of_rest(uint32_t done, const State& s) {
    double bound = s.last;
    std::vector<double> head(n_, 0);
    for (int op = 0; op < n_; ++op) {
      if (done >> op & 1) continue;
      double at = s.free[on(op)];
      for (uint32_t m = g_.needs[op]; m; m &= m - 1) {
        const int b = std::countr_zero(m);
        at = std::max(at, done >> b & 1 ? s.end[b] : head[b] + us(b));
      }
      for (const int32_t v : g_.reads[op]) {
        const int b = producer(v);
        const double there =
            s.arrived[static_cast<size_t>(v) * devices_ + on(op)];
        const double ready = b < 0           ? 0
                             : done >> b & 1 ? s.end[b]
                                             : head[b] + us(b);
        at = std::max(at, there >= 0 ? there : ready + copy(v, op));
      }
      head[op] = at;
      bound = std::max(bound, at + us(op) + tail_[op]);
    }
    if (too_long(bound)) return bound;
    for (int d = 0; d < devices_; ++d) {
      items_.clear();
      for (int op = 0; op < n_; ++op) {
        if (!(done >> op & 1) && on(op) == d) {
          items_.push_back({head[op], us(op), tail_[op]});
        }
      }
      bound = std::max(bound, machine_bound(items_, 1));
    }
    return bound;
  }

  void extend(uint32_t done, const State& s) {
    if (stop() || too_long(bound_of_rest(done, s))) return;
    if (sequence_.size() == static_cast<size_t>(n_)) {
      finish(s.last);
      return;
    }
    if (!g_.units.limited && is_known(done, s)) return;
    for (int op = 0; op < n_ && !stopped_; ++op) {
      if (done >> op & 1 || (g_.needs[op] & ~done) != 0) continue;
      // The plan with these two exchanged is covered elsewhere.
      if (!sequence_.empty()) {
        const int last = sequence_.back();
        if (op < last && !(g_.needs[op] >> last & 1) &&
            (uses_[op] & uses_[last]) == 0) {
          continue;
        }
      }
      State next = s;
      append(op, next);
      sequence_.push_back(op);
      extend(done | 1U << op, next);
      sequence_.pop_back();
    }
  }

  // Whether the same ops were done before, with nothing later than now.
  bool is_known(uint32_t done, const State& s) {
    std::vector<double> times = s.free;
    times.push_back(s.last);
    for (int op = 0; op < n_; ++op) {
      if (!(done >> op & 1)) continue;
      bool wanted = false;
      for (int r = 0; r < n_; ++r) {
        wanted |= !(done >> r & 1) && (g_.needs[r] >> op & 1) != 0;
      }
      times.push_back(wanted ? s.end[op] : 0);
    }
    times.insert(times.end(), s.arrived.begin(), s.arrived.end());
    auto& states = known_[done];
    for (const std::vector<double>& other : states) {
      bool better = true;
      for (size_t k = 0; k < times.size() && better; ++k) {
        better = other[k] <= times[k] &&
                 (k < s.free.size() || (other[k] < 0) == (times[k] < 0));
      }
      if (better) return true;
    }
    if (states.size() < kMostExactStates) states.push_back(std::move(times));
    return false;
  }

  void finish(double last) {
    PlacePlan plan;
    for (int32_t i = 0; i < g_.p.num_ops(); ++i) {
      plan.device.push_back(device_[g_.units.unit[i]]);
    }
    for (const int op : sequence_) plan.sequence.push_back(g_.node[op]);
    if (g_.units.limited && !evaluate(g_.p, plan).violations.empty()) return;
    best_.plan = std::move(plan);
    best_.value = last;
  }

  const ExactGraph g_;
  const Budget& budget_;
  int64_t most_, nodes_ = 0;
  Found& best_;
  bool stopped_ = false;
  int n_ = 0, devices_ = 0;
  std::vector<int32_t> order_;  // units
  std::vector<int> device_;     // per unit; -1: none yet
  std::vector<int> used_;       // per device: number of units
  std::vector<double> held_;    // per device: their bytes
  std::vector<double> head_, tail_;
  std::vector<uint64_t> uses_;  // per op: machines, as bits
  std::vector<int> sequence_;   // ops
  std::vector<ExactItem> items_;
  std::unordered_map<uint32_t, std::vector<std::vector<double>>> known_;
};

}  // namespace

bool is_tiny(const StepUnits& units) {
  const PlanProblem& p = units.problem;
  if (!units.ordered || units.num_ops > kMostExactOps || units.num_ops == 0 ||
      units.num_units > 2 * kMostExactOps ||
      p.num_devices() > kMostExactDevices) {
    return false;
  }
  for (const double bytes : p.costs.bus_bytes) {
    if (bytes > 0) return false;
  }
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const auto kind = p.graph.kind[i];
    const bool source = kind == SimulatedGraph::Kind::kSource &&
                        p.graph.reads[i].empty() && p.graph.controls[i].empty();
    if (kind != SimulatedGraph::Kind::kOp && !source) return false;
  }
  return true;
}

bool find_best_step(const StepUnits& units, const Budget& budget,
                    int64_t most_nodes, Found& best) {
  ExactSearch search(units, budget, most_nodes, best);
  const bool all = search.run();
  best.moves += search.nodes();
  return all;
}

}  // namespace berth
