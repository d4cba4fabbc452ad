// ListScheduler: a plan in one pass, op by op.
//
// Takes the next op by its rank, puts it where it ends earliest, and continues:
// good plans in milliseconds, or starts for a search of seconds. The first op
// of a unit places the unit. Arrays grow once; one per thread.

#ifndef BERTH_PLANNER_LIST_SCHEDULE_H_
#define BERTH_PLANNER_LIST_SCHEDULE_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/infinity.h"
#include "planner/budget.h"
#include "planner/step_units.h"
#include "simulate/copy_route.h"

namespace berth {

struct ListRule {
  enum class Next : uint8_t {
    kPath,   // the longest path after it
    kReady,  // the op that could start first
  };
  Next next = Next::kPath;
  double copies = 1;    // weight of copy times in paths
  double stay = 0;      // extra weight of copies over their time
  int32_t devices = 0;  // only this many fastest, if allowed; 0: all
  double noise = 0;     // paths are scaled by 1 - noise to 1 + noise
};

// The rules to begin with, the best guess first.
inline constexpr ListRule kListRules[] = {
    {},
    {.devices = 2},
    {.devices = 4},
    {.devices = 8},
    {.next = ListRule::Next::kReady, .devices = 4},
    {.copies = 0},
    {.stay = 0.5},
    {.next = ListRule::Next::kReady},
    {.copies = 0.5},
    {.stay = 1000},
    {.next = ListRule::Next::kReady, .stay = 0.5},
};

// "list scheduling by path, on 4 devices".
inline std::string name_of(const ListRule& rule) {
  return fmt::format(
      "list scheduling by {}{}",
      rule.next == ListRule::Next::kPath ? "path" : "readiness",
      rule.devices > 0 ? fmt::format(", on {} devices", rule.devices) : "");
}

class ListScheduler {
 public:
  explicit ListScheduler(const StepUnits& units)
      : units_(units), p_(units.problem), g_(units.problem.graph) {
    const size_t n = g_.num_nodes();
    routes_ = CopyRoutes(p_.costs);
    free_.resize(routes_.num_resources());
    rank_.resize(n), start_.resize(n), end_.resize(n);
    missing_.resize(n);
    plan_.device.resize(n);
    first_arrival_.resize(g_.producer.size());
    find_middling_costs();
    fastest_.resize(p_.costs.devices.size());
    std::iota(fastest_.begin(), fastest_.end(), 0);
    const std::vector<double> speed = speeds_of(p_);
    std::ranges::stable_sort(fastest_, std::greater(),
                             [&](int32_t d) { return speed[d]; });
  }

  // Returns a plan that keeps masks and groups, and does not look at limits;
  // the next call overwrites it. Each unit must allow some device.
  const PlacePlan& run(const ListRule& rule, StreamRandom& random) {
    rule_ = &rule;
    reset();
    among_ = ~DeviceSet{0};
    if (rule.devices > 0 && rule.devices < p_.num_devices()) {
      among_ = DeviceSet{0};
      for (int32_t k = 0; k < rule.devices; ++k)
        among_ |= device_bit(fastest_[k]);
    }
    find_ranks(random);
    for (const int32_t i : units_.order) {
      if (missing_[i] == 0) enqueue(i);
    }
    while (true) {
      if (!settled_.empty()) {
        const int32_t node = settled_.back();
        settled_.pop_back();
        settle(node);
      } else if (!waiting_.empty()) {
        const int32_t op = waiting_.top().node;
        waiting_.pop();
        place(op);
      } else {
        break;
      }
    }
    finish_plan();
    return plan_;
  }

 private:
  struct Arrival {
    double at;
    int32_t device, next;
  };
  struct Slot {
    double start, end;
  };
  struct Waiting {
    double first, second;
    int32_t node;
    bool operator<(const Waiting& o) const {
      return std::tuple(first, second, o.node) <
             std::tuple(o.first, o.second, node);
    }
  };

  void find_middling_costs() {
    find_middling_work();
    double latency = 0, per_byte = 0, links = 0;
    const bool alike = p_.costs.links.size() == 1;
    const int32_t devices = alike ? 2 : p_.num_devices();
    for (int32_t from = 0; p_.num_devices() > 1 && from < devices; ++from) {
      for (int32_t to = 0; to < devices; ++to) {
        if (from == to) continue;
        latency += copy_time(p_, from, to, 0);
        per_byte += copy_time(p_, from, to, 1 << 20) / (1 << 20);
        ++links;
      }
    }
    copy_us_.assign(g_.producer.size(), 0);
    for (const int32_t i : units_.order) {
      for (const int32_t v : g_.values[i]) {
        if (links == 0 || g_.everywhere[v]) continue;
        const double bytes = p_.costs.bytes.item(v);
        const double us =
            (latency + std::max(per_byte - latency / (1 << 20), 0.0) * bytes) /
            links;
        copy_us_[v] = us > 0 ? us : 0;
      }
    }
  }

  void find_middling_work() {
    const size_t classes = p_.costs.classes.size();
    work_us_.assign(rank_.size(), 0);
    const std::vector<DeviceSet> of_class = devices_of_classes(p_);
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      if (!p_.takes_time(i)) continue;
      const DeviceSet& allowed = units_.allowed[units_.unit[i]];
      // The harmonic mean: slow devices hardly count.
      double speeds = 0, count = 0;
      for (size_t c = 0; c < classes; ++c) {
        const int32_t here = (allowed & of_class[c]).count();
        if (here == 0) continue;
        speeds += here / p_.costs.times[i * classes + c].us;
        count += here;
      }
      work_us_[i] = speeds > 0 ? count / speeds : 0;
    }
  }

  void reset() {
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      missing_[i] = g_.reads[i].size() + g_.controls[i].size();
    }
    std::fill(end_.begin(), end_.end(), 0);
    device_of_unit_.assign(units_.num_units, -1);
    std::fill(first_arrival_.begin(), first_arrival_.end(), -1);
    arrivals_.clear();
    std::fill(free_.begin(), free_.end(), 0);
    plan_.sequence.clear();
  }

  void find_ranks(StreamRandom& random) {
    const double copies = rule_->copies, noise = rule_->noise;
    for (auto it = units_.order.rbegin(); it != units_.order.rend(); ++it) {
      const int32_t i = *it;
      double behind = 0;
      for (const int32_t v : g_.values[i]) {
        const double copy = copies > 0 ? copies * copy_us_[v] : 0;
        for (const int32_t r : g_.readers[v]) {
          behind = std::max(behind, rank_[r] + copy);
        }
      }
      for (const int32_t f : g_.followers[i])
        behind = std::max(behind, rank_[f]);
      rank_[i] = behind + work_us_[i];
      if (noise > 0) rank_[i] *= 1 + noise * (2 * random.uniform() - 1);
    }
  }

  void enqueue(int32_t node) {
    if (!p_.takes_time(node)) {
      settled_.push_back(node);
      return;
    }
    double first = rank_[node], second = 0;
    if (rule_->next == ListRule::Next::kReady) {
      second = std::exchange(first, 0);
      for (const int32_t v : g_.reads[node]) {
        first = std::min(first, -end_[g_.producer[v]]);
      }
      for (const int32_t c : g_.controls[node])
        first = std::min(first, -end_[c]);
    }
    waiting_.push({first, second, node});
  }

  void wake_behind(int32_t node) {
    const auto wake = [&](int32_t next) {
      if (--missing_[next] == 0) enqueue(next);
    };
    for (const int32_t v : g_.values[node]) {
      for (const int32_t r : g_.readers[v]) wake(r);
    }
    for (const int32_t f : g_.followers[node]) wake(f);
  }

  // Nodes that take no time are where their unit is; before that is placed,
  // they are where they are wanted.
  void settle(int32_t node) {
    const int32_t d = device_of_unit_[units_.unit[node]];
    double at = 0;
    for (const int32_t c : g_.controls[node]) at = std::max(at, end_[c]);
    for (const int32_t v : g_.reads[node]) {
      const double there = d < 0 ? -1 : arrival(v, d);
      at = std::max(at, there < 0 ? end_[g_.producer[v]] : there);
    }
    start_[node] = end_[node] = at;
    wake_behind(node);
  }

  void place(int32_t op) {
    const int32_t unit = units_.unit[op];
    const int32_t d = choose(op);
    for (const int32_t v : g_.reads[op]) {
      const int32_t from = units_.unit[g_.producer[v]];
      if (device_of_unit_[from] >= 0 || from == unit) continue;
      const DeviceSet allowed = units_.allowed[from];
      device_of_unit_[from] = allowed.has(d) ? d : allowed.first();
    }
    device_of_unit_[unit] = d;
    const Slot slot = slot_on(op, d, true);
    start_[op] = slot.start, end_[op] = slot.end;
    plan_.sequence.push_back(op);
    wake_behind(op);
  }

  int32_t choose(int32_t op) {
    const int32_t unit = units_.unit[op];
    if (device_of_unit_[unit] >= 0) return device_of_unit_[unit];
    int32_t best = -1;
    double best_cost = kInfinity;
    DeviceSet rest = units_.allowed[unit] & among_;
    if (!rest) rest = units_.allowed[unit];
    for (; rest; rest.drop_first()) {
      const double end = slot_on(op, rest.first(), false).end;
      const double cost =
          rule_->stay > 0 ? end + rule_->stay * copies_us_ : end;
      if (best >= 0 && !(cost < best_cost)) continue;
      best = rest.first();
      best_cost = cost;
    }
    return best;
  }

  Slot slot_on(int32_t op, int32_t device, bool commit) {
    const double ready = copy_in(op, device, commit);
    const double start = std::max(free_[device], ready);
    const Slot slot = {start, start + p_.costs.time(op, device).us};
    if (commit) free_[device] = slot.end;
    return slot;
  }

  // Returns when the inputs of an op are on a device; if the device makes the
  // copies itself, when they are made.
  double copy_in(int32_t op, int32_t device, bool commit) {
    const CopyRule rule = p_.costs.devices[device].copies;
    double ready = 0;
    copies_us_ = 0;
    for (const int32_t c : g_.controls[op]) ready = std::max(ready, end_[c]);
    for (const int32_t v : g_.reads[op]) {
      double at = arrival(v, device);
      if (at < 0) {
        const int32_t from = device_of_unit_[units_.unit[g_.producer[v]]];
        const int64_t bytes = p_.costs.bytes.item(v);
        const double us = copy_time(p_, from, device, bytes);
        // Greedy choices are better when a sender waits only for a receiver
        // that would do so for it.
        CopyRoute route = routes_.between(from, device);
        if (rule != CopyRule::kBoth &&
            p_.costs.devices[from].copies == CopyRule::kBoth) {
          route = route.without(from);
        }
        copies_us_ += us;
        if (!commit) {
          for (const int32_t n : route) tried_.emplace_back(n, free_[n]);
        }
        at = route.run(end_[g_.producer[v]], us, free_.data()).end_us;
        if (commit) {
          arrivals_.push_back({at, device, first_arrival_[v]});
          first_arrival_[v] = static_cast<int32_t>(arrivals_.size()) - 1;
        }
      }
      ready = std::max(ready, at);
    }
    if (!comes_early(rule)) ready = std::max(ready, free_[device]);
    for (; !tried_.empty(); tried_.pop_back()) {
      free_[tried_.back().first] = tried_.back().second;
    }
    return ready;
  }

  // -1: it is not there, and no copy of it has been made yet.
  double arrival(int32_t value, int32_t device) const {
    const int32_t from = device_of_unit_[units_.unit[g_.producer[value]]];
    if (from < 0 || from == device || g_.everywhere[value]) {
      return end_[g_.producer[value]];
    }
    for (int32_t a = first_arrival_[value]; a >= 0; a = arrivals_[a].next) {
      if (arrivals_[a].device == device) return arrivals_[a].at;
    }
    return -1;
  }

  // In order of start: what an op waits for starts before it, or at the same
  // time but is placed before it.
  void finish_plan() {
    std::ranges::stable_sort(plan_.sequence, {},
                             [&](int32_t op) { return start_[op]; });
    for (int32_t u = 0; u < units_.num_units; ++u) {
      if (device_of_unit_[u] < 0) {
        device_of_unit_[u] = units_.allowed[u].first();
      }
    }
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      plan_.device[i] = device_of_unit_[units_.unit[i]];
    }
  }

  const StepUnits& units_;
  const PlanProblem& p_;
  const SimulatedGraph& g_;
  const ListRule* rule_ = nullptr;
  std::vector<double> work_us_;   // per node, on an average device
  std::vector<double> copy_us_;   // per value, over an average link
  std::vector<int32_t> fastest_;  // devices
  DeviceSet among_;               // those that the rule allows
  PlacePlan plan_;
  double copies_us_ = 0;  // as seen by slot_on()

  std::vector<double> rank_;             // per node
  std::vector<double> start_, end_;      // per node
  std::vector<int32_t> missing_;         // per node
  std::vector<int32_t> device_of_unit_;  // -1: not yet
  std::vector<int32_t> first_arrival_;   // per value
  std::vector<Arrival> arrivals_;
  CopyRoutes routes_;
  std::vector<double> free_;                       // per resource
  std::vector<std::pair<int32_t, double>> tried_;  // what it was before
  std::priority_queue<Waiting> waiting_;
  std::vector<int32_t> settled_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_LIST_SCHEDULE_H_
