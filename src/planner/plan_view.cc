#include "planner/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/loads.h"

namespace berth {

namespace {

// The value that an alias renames, through others; includes small constants.
int32_t root_of(const SimulatedGraph& g, int32_t value) {
  for (int32_t hops = 0; hops < g.num_nodes(); ++hops) {
    const int32_t next = g.alias_of[g.producer[value]];
    if (next < 0) break;
    value = next;
  }
  return value;
}

std::vector<PlannedTransfer> simulated(const Simulation& s,
                                       const SimulatedGraph& g) {
  std::vector<PlannedTransfer> all;
  all.reserve(s.transfers.size());
  for (const SimulatedTransfer& t : s.transfers) {
    all.push_back({g.values.begin_of(t.value.node) + t.value.output, t.from,
                   t.to, t.bytes, t.end_us - t.start_us, t.start_us, t.end_us});
  }
  return all;
}

}  // namespace

std::vector<PlannedTransfer> transfers_of(const PlanProblem& p,
                                          const PlacePlan& plan,
                                          const Evaluation& evaluation) {
  const SimulatedGraph& g = p.graph;
  if (p.model == PlanModel::kStep) return simulated(evaluation.simulation, g);
  std::vector<PlannedTransfer> all;
  const std::vector<int32_t> renamed = renamed_values(g);
  std::vector<DeviceSet> read_on(g.producer.size(), 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const DeviceSet here = device_bit(plan.device[i]);
    for (const int32_t v : g.reads[i]) {
      read_on[renamed[v]] |= here;
    }
  }
  for (size_t v = 0; v < g.producer.size(); ++v) {
    if (g.everywhere[v]) continue;
    const int32_t from = plan.device[g.producer[v]];
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      if (d == from || !read_on[v].has(d)) continue;
      const int64_t bytes = p.costs.bytes.item(static_cast<int32_t>(v));
      const double time = p.touch_us.empty()
                              ? p.costs.link(from, d).time_us(bytes)
                              : p.touch_us[v];
      all.push_back({static_cast<int32_t>(v), from, d, bytes, time});
    }
  }
  return all;
}

std::string value_name(const PlanProblem& p, int32_t value) {
  const ValueRef v = p.graph.value(value);
  const std::string& op = p.names[v.node];
  return p.graph.graph == nullptr ? op : fmt::format("{}:{}", op, v.output);
}

std::string short_name(const PlanProblem& p, int32_t device) {
  const std::string& name = p.costs.devices[device].name;
  return name.starts_with('/') ? short_device(name) : name;
}

namespace {

// Walks back from what ends last.
class Walk {
 public:
  Walk(const PlanProblem& p, const PlacePlan& plan, const Simulation& s)
      : p_(p), plan_(plan), s_(s) {
    const size_t n = p.num_ops();
    before_.assign(n, -1);
    std::vector<int32_t> last(p.costs.devices.size(), -1);
    for (const int32_t op : plan.sequence) {
      before_[op] = std::exchange(last[plan.device[op]], op);
    }
    first_.assign(p.graph.producer.size(), -1);
    for (size_t t = 0; t < s.transfers.size(); ++t) {
      next_.push_back(std::exchange(first_[value_of(s.transfers[t])], t));
    }
  }

  std::vector<CriticalItem> run() {
    CriticalItem at = last_of_all();
    while (at.op >= 0 || at.transfer >= 0) {
      path_.push_back(at);
      if (path_.size() > s_.end_us.size() + s_.transfers.size()) break;
      at = at.op >= 0 ? cause_of_op(at) : cause_of_transfer(at);
    }
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  int32_t value_of(const SimulatedTransfer& t) const {
    return p_.graph.values.begin_of(t.value.node) + t.value.output;
  }
  CriticalItem op(int32_t i) const {
    return {i, -1, s_.start_us[i], s_.end_us[i]};
  }
  CriticalItem transfer(int32_t t) const {
    return {-1, t, s_.transfers[t].start_us, s_.transfers[t].end_us};
  }

  CriticalItem last_of_all() const {
    CriticalItem best;
    for (const int32_t i : plan_.sequence) {
      if (best.op < 0 || op(i).end > best.end) best = op(i);
    }
    return best;
  }

  // The later end; among equals the earlier start.
  static void take(CriticalItem& best, const CriticalItem& c, double before) {
    if (c.end > before + slack(before)) return;
    if ((best.op < 0 && best.transfer < 0) || c.end > best.end) best = c;
  }
  static double slack(double t) { return 1e-9 * std::max(1.0, std::fabs(t)); }
  // What ended too early did not delay anything.
  static CriticalItem binding(const CriticalItem& c, double start) {
    return c.end >= start - slack(start) && start > 0 ? c : CriticalItem();
  }

  // The op that computed a value, through aliases, ending by `before`.
  void take_producer(CriticalItem& best, int32_t value, double before) const {
    const int32_t node = p_.graph.producer[root_of(p_.graph, value)];
    if (p_.takes_time(node)) take(best, op(node), before);
  }

  // The copies of a value to a device.
  void take_copies(CriticalItem& best, int32_t value, int32_t device,
                   double before) const {
    for (int32_t t = first_[value]; t >= 0; t = next_[t]) {
      if (s_.transfers[t].to == device) take(best, transfer(t), before);
    }
  }

  CriticalItem cause_of_op(const CriticalItem& item) const {
    CriticalItem best;
    const int32_t i = item.op, device = plan_.device[i];
    for (const int32_t v : p_.graph.reads[i]) {
      take_producer(best, v, item.start);
      take_copies(best, v, device, item.start);
    }
    for (const int32_t c : p_.graph.controls[i]) {
      if (p_.takes_time(c)) take(best, op(c), item.start);
    }
    const int32_t previous = before_[i];
    if (previous >= 0) take(best, op(previous), item.start);
    if (p_.costs.devices[device].copies == CopyRule::kReceiving ||
        p_.costs.devices[device].copies == CopyRule::kBoth) {
      take_neighbours(best, device, -1, item);
    }
    return binding(best, item.start);
  }

  CriticalItem cause_of_transfer(const CriticalItem& item) const {
    CriticalItem best;
    const SimulatedTransfer& t = s_.transfers[item.transfer];
    take_producer(best, value_of(t), item.start);
    take_neighbours(best, t.to, t.from, item);
    if (binding(best, item.start).end <= 0) {  // the device was computing
      for (const int32_t i : plan_.sequence) {
        const int32_t d = plan_.device[i];
        if (d == t.to || d == t.from) take(best, op(i), item.start);
      }
    }
    return binding(best, item.start);
  }

  // Transfers that keep the same devices or link busy.
  void take_neighbours(CriticalItem& best, int32_t to, int32_t from,
                       const CriticalItem& item) const {
    const SharedLinks shared =
        from < 0 ? SharedLinks() : p_.costs.link(from, to).shared;
    for (int32_t t = 0; t < std::ssize(s_.transfers); ++t) {
      const SimulatedTransfer& c = s_.transfers[t];
      if (t == item.transfer) continue;
      const bool near = c.to == to || c.from == to || c.from == from ||
                        shared.meet(p_.costs.link(c.from, c.to).shared);
      if (near && c.start_us < item.start) take(best, transfer(t), item.start);
    }
  }

  const PlanProblem& p_;
  const PlacePlan& plan_;
  const Simulation& s_;
  std::vector<int32_t> before_;  // per op: the one before it on its device
  std::vector<int32_t> first_;   // per value: its last transfer
  std::vector<int32_t> next_;    // per transfer: another of its value
  std::vector<CriticalItem> path_;
};

}  // namespace

std::vector<CriticalItem> critical_path(const PlanProblem& p,
                                        const PlacePlan& plan,
                                        const Evaluation& evaluation) {
  const size_t n = evaluation.simulation.end_us.size();
  if (p.model != PlanModel::kStep || n != p.names.size()) return {};
  return Walk(p, plan, evaluation.simulation).run();
}

}  // namespace berth
