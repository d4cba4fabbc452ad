// DeviceScheduler: an order of the ops of a plan with given devices.
//
// Goes through the step by time: whenever a device is idle, it takes one of its
// ready ops. A pass costs little more than reading the graph. One per thread;
// arrays grow once.

#ifndef BERTH_PLANNER_DEVICE_SCHEDULE_H_
#define BERTH_PLANNER_DEVICE_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "planner/step_units.h"
#include "simulate/copy_route.h"

namespace berth {

class DeviceScheduler {
 public:
  // Which of the ready ops to take.
  enum class First : uint8_t {
    kPath,     // the one with the longest path after it
    kProgram,  // first in the file: keeps values for less time
  };

  explicit DeviceScheduler(const StepUnits& units)
      : units_(units),
        p_(units.problem),
        g_(units.problem.graph),
        routes_(with_engines(p_.costs)) {
    const size_t n = p_.num_ops();
    const size_t devices = p_.num_devices();
    program_.assign(n, 0);
    int32_t place = 0;
    for (const int32_t i : order_of_ops(p_)) program_[i] = place++;
    rank_.resize(n), came_.resize(n), missing_.resize(n);
    ready_.resize(devices), idle_.resize(devices);
    free_.resize(routes_.num_resources()), arrival_.resize(devices, -1);
  }

  // Replaces the sequence of a plan that has a device per node.
  void run(First first, PlacePlan& plan) {
    find_ranks(first, plan);
    plan.sequence.clear();
    std::fill(came_.begin(), came_.end(), 0);
    std::fill(free_.begin(), free_.end(), 0);
    std::fill(idle_.begin(), idle_.end(), 1);
    for (const int32_t i : units_.order) {
      missing_[i] = g_.reads[i].size() + g_.controls[i].size();
      if (missing_[i] == 0) become_ready(i);
    }
    settle(plan);
    std::vector<int32_t> touched;
    while (!events_.empty()) {
      const double now = events_.top().at;
      touched.clear();
      while (!events_.empty() && events_.top().at == now) {
        const Event e = events_.top();
        events_.pop();
        const int32_t d = plan.device[e.node];
        touched.push_back(d);
        if (e.ends) {
          idle_[d] = 1;
          end(e.node, now, plan);
          settle(plan);
        } else {
          ready_[d].push({rank_[e.node], e.node});
        }
      }
      for (const int32_t d : touched) start_on(d, now, plan);
    }
  }

 private:
  // What the order of ops is decided by: copies never stop a device.
  static Machine with_engines(Machine m) {
    for (DeviceCost& d : m.devices) d.copies = CopyRule::kOverlap;
    for (LinkCost& link : m.links) link.shared = {};
    return m;
  }

  struct Event {
    double at;
    int32_t node;
    bool ends;  // else: becomes ready
    bool operator<(const Event& o) const {
      if (at != o.at) return at > o.at;
      return node != o.node ? node > o.node : ends < o.ends;
    }
  };
  struct Ready {
    double rank;
    int32_t node;
    bool operator<(const Ready& o) const {
      return rank != o.rank ? rank < o.rank : node > o.node;
    }
  };

  void find_ranks(First first, const PlacePlan& plan) {
    for (auto it = units_.order.rbegin(); it != units_.order.rend(); ++it) {
      const int32_t i = *it;
      if (first == First::kProgram) {
        rank_[i] = -program_[i];
        continue;
      }
      double behind = 0;
      for (const int32_t v : g_.values[i]) {
        for (const int32_t r : g_.readers[v]) {
          behind = std::max(
              behind, rank_[r] + copy_of(v, plan.device[i], plan.device[r]));
        }
      }
      for (const int32_t f : g_.followers[i])
        behind = std::max(behind, rank_[f]);
      rank_[i] =
          behind + (p_.takes_time(i) ? p_.costs.time(i, plan.device[i]).us : 0);
    }
  }

  double copy_of(int32_t value, int32_t from, int32_t to) const {
    if (from == to || g_.everywhere[value]) return 0;
    return copy_time(p_, from, to, p_.costs.bytes.item(value));
  }
  void end(int32_t node, double at, const PlacePlan& plan) {
    for (const int32_t v : g_.values[node]) send(v, at, plan);
    for (const int32_t f : g_.followers[node]) arrive(f, at);
  }

  void send(int32_t value, double at, const PlacePlan& plan) {
    const int32_t from = plan.device[g_.producer[value]];
    for (const int32_t r : g_.readers[value]) {
      const int32_t to = plan.device[r];
      double& there = arrival_[to];
      if (there < 0) {
        const double us = copy_of(value, from, to);
        there = us > 0
                    ? routes_.between(from, to).run(at, us, free_.data()).end_us
                    : at;
      }
      arrive(r, there);
    }
    for (const int32_t r : g_.readers[value]) arrival_[plan.device[r]] = -1;
  }

  void become_ready(int32_t node) {
    if (!p_.takes_time(node)) {
      settled_.push_back(node);
      return;
    }
    events_.push({came_[node], node, false});
  }

  void arrive(int32_t node, double at) {
    came_[node] = std::max(came_[node], at);
    if (--missing_[node] == 0) become_ready(node);
  }

  void settle(const PlacePlan& plan) {
    while (!settled_.empty()) {
      const int32_t next = settled_.back();
      settled_.pop_back();
      end(next, came_[next], plan);
    }
  }

  void start_on(int32_t device, double now, PlacePlan& plan) {
    std::priority_queue<Ready>& ready = ready_[device];
    if (!idle_[device] || ready.empty()) return;
    const int32_t op = ready.top().node;
    ready.pop();
    plan.sequence.push_back(op);
    idle_[device] = 0;
    events_.push({now + p_.costs.time(op, device).us, op, true});
  }

  const StepUnits& units_;
  const PlanProblem& p_;
  const SimulatedGraph& g_;
  std::vector<int32_t> program_;  // per node: position in the file's order
  std::vector<double> rank_, came_;
  std::vector<int32_t> missing_;
  std::priority_queue<Event> events_;
  std::vector<std::priority_queue<Ready>> ready_;  // per device
  std::vector<uint8_t> idle_;
  const CopyRoutes routes_;
  std::vector<double> free_;      // per resource, of copies
  std::vector<double> arrival_;   // per device: of the value being sent
  std::vector<int32_t> settled_;  // nodes without time whose inputs are ready
};

}  // namespace berth

#endif  // BERTH_PLANNER_DEVICE_SCHEDULE_H_
