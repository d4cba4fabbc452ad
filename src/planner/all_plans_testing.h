// All plans of small problems, and small problems to try them on.

#ifndef BERTH_PLANNER_ALL_PLANS_TESTING_H_
#define BERTH_PLANNER_ALL_PLANS_TESTING_H_

#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "planner/problem.h"
#include "simulate/random_steps_testing.h"

namespace berth::testing {

// Calls `fn` with every placement that masks and groups allow, and every order
// of the ops that take time.
class AllPlans {
 public:
  using Fn = std::function<void(const PlacePlan&)>;
  AllPlans(const PlanProblem& p, Fn fn)
      : p_(p), fn_(std::move(fn)), allowed_(allowed_of_groups(p)) {
    group_device_.assign(static_cast<size_t>(p.num_groups), 0);
    plan_.device.assign(static_cast<size_t>(p.num_ops()), 0);
    place(0);
  }

 private:
  void place(int32_t group) {
    if (group == p_.num_groups) {
      for (int32_t i = 0; i < p_.num_ops(); ++i) {
        plan_.device[i] = group_device_[p_.group[i]];
      }
      missing_.clear();
      for (int32_t i = 0; i < p_.num_ops(); ++i) {
        missing_.push_back(p_.graph.reads[i].size() +
                           p_.graph.controls[i].size());
      }
      done_.assign(missing_.size(), 0);
      extend();
      return;
    }
    for (int32_t d = 0; d < p_.num_devices(); ++d) {
      if (!allowed_[group].has(d)) continue;
      group_device_[group] = d;
      place(group + 1);
    }
  }
  void extend() {
    bool last = true;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      if (done_[i] || missing_[i] > 0) continue;
      last = false;
      const bool timed = p_.takes_time(i);
      done_[i] = 1;
      if (timed) plan_.sequence.push_back(i);
      add(i, -1);
      extend();
      add(i, 1);
      if (timed) plan_.sequence.pop_back();
      done_[i] = 0;
      if (!timed) return;  // its position makes no difference
    }
    if (last) fn_(plan_);
  }
  void add(int32_t op, int32_t by) {
    for (const int32_t v : p_.graph.values[op]) {
      for (const int32_t r : p_.graph.readers[v]) missing_[r] += by;
    }
    for (const int32_t f : p_.graph.followers[op]) missing_[f] += by;
  }

  const PlanProblem& p_;
  Fn fn_;
  std::vector<DeviceSet> allowed_;
  std::vector<int32_t> group_device_, missing_;
  std::vector<uint8_t> done_;
  PlacePlan plan_;
};

// Problems of any kind; `simple`: equal devices, ops of few sizes, free copies
// that are worth avoiding.
inline PlanProblem random_step_problem(std::mt19937& r, int32_t nodes,
                                       int32_t devices, bool simple) {
  using place_tests::pick;
  place_tests::RandomSteps o;
  o.nodes = nodes;
  o.devices = devices;
  o.aliases = !simple;
  if (simple) o.rules = {CopyRule::kFree};
  place_tests::RandomStep s = place_tests::random_step(r, o);
  PlanProblem p;
  p.name = "random";
  p.graph = std::move(s.graph);
  p.costs = std::move(s.costs);
  if (simple) {
    // Equal devices, ops of few sizes, copies that are worth avoiding.
    for (DeviceCost& d : p.costs.devices) d.device_class = 0;
    p.costs.classes.resize(1);
    p.costs.times.assign(static_cast<size_t>(nodes), {});
    const double size = 3 + pick(r, 3);
    for (OpTime& t : p.costs.times) {
      t.us = pick(r, 3) == 0 ? pick(r, 3) : size;
    }
    const double latency = pick(r, 12);
    for (LinkCost& l : p.costs.links) l = {latency, 1};
    p.costs.workspace.clear();
  }
  const auto n = static_cast<size_t>(nodes);
  p.names.assign(n, "op");
  p.resident_bytes.assign(n, 0);
  p.backward.assign(n, 0);
  const DeviceSet all = DeviceSet::below(devices);
  for (int32_t i = 0; i < nodes; ++i) {
    const DeviceSet some = static_cast<DeviceSet>(r()) & all;
    p.allowed.push_back(pick(r, 6) == 0 && some ? some : all);
    p.group.push_back(i > 0 && pick(r, 6) == 0 ? pick(r, i) : i);
  }
  p.num_groups = nodes;
  return p;
}

}  // namespace berth::testing

#endif  // BERTH_PLANNER_ALL_PLANS_TESTING_H_
