// Problems made by hand or at random, for tests and benches.

#ifndef BERTH_PLANNER_PROBLEM_TESTING_H_
#define BERTH_PLANNER_PROBLEM_TESTING_H_

#include <string>
#include <utility>
#include <vector>

#include "base/random_cases_testing.h"
#include "planner/problem.h"

namespace berth::testing {

// Collects ops of one output each, then makes the problem.
//   ProblemMaker m(PlanModel::kStep);
//   const int gpu = m.device_class("GPU");
//   m.device("GPU:0", gpu);
//   const int a = m.op("a", {3}, {});
//   m.op("b", {1}, {a});
//   PlanProblem p = m.make();
class ProblemMaker {
 public:
  explicit ProblemMaker(PlanModel model) { p_.model = model; }

  int device_class(const std::string& name) {
    p_.costs.classes.push_back({.name = name, .type = name});
    return static_cast<int>(p_.costs.classes.size()) - 1;
  }
  int device(const std::string& name, int of_class, int64_t memory_limit = 0,
             CopyRule copies = CopyRule::kOverlap, bool free_of_touch = false) {
    p_.costs.devices.push_back({name, of_class, memory_limit, copies, -1});
    p_.free_of_touch.push_back(free_of_touch);
    return p_.num_devices() - 1;
  }
  // Takes `us` per class; reads the outputs of `inputs`; its own output has
  // `bytes`, and takes `touch` to send or receive (under that rule).
  int op(const std::string& name, const std::vector<double>& us,
         const std::vector<int>& inputs, int64_t bytes = 0, double touch = -1) {
    p_.names.push_back(name);
    us_.push_back(us);
    inputs_.emplace_back(inputs.begin(), inputs.end());
    bytes_.push_back(bytes);
    if (touch >= 0) p_.touch_us.push_back(touch);
    p_.allowed.push_back(~DeviceSet{0});
    p_.group.push_back(p_.num_groups++);
    p_.resident_bytes.push_back(0);
    p_.backward.push_back(0);
    return static_cast<int>(us_.size()) - 1;
  }
  void allow(int op, DeviceSet devices) { p_.allowed[op] = devices; }
  void hold(int op, double bytes) { p_.resident_bytes[op] = bytes; }
  void together(int a, int b) {
    const int from = p_.group[b], to = p_.group[a];
    for (int32_t& g : p_.group) g = g == from ? to : g;
  }
  // Sets all links that are not set otherwise.
  void links(double latency_us, double bytes_per_us) {
    link_ = {latency_us, bytes_per_us, -1, CostOrigin::kDeclared};
  }

  PlanProblem make() {
    PlanProblem p = p_;
    p.name = "made";
    renumber_groups(p);
    p.costs.links.assign(p.costs.devices.size() * p.costs.devices.size(),
                         link_);
    for (size_t i = 0; i < us_.size(); ++i) {
      const auto number = static_cast<int32_t>(i);
      p.graph.kind.push_back(SimulatedGraph::Kind::kOp);
      p.graph.reads.add(inputs_[i]);
      p.graph.controls.add({});
      p.graph.values.add(std::vector<int32_t>{number});
      p.graph.producer.push_back(number);
      p.graph.everywhere.push_back(0);
      p.graph.lives_on.push_back(0);
      p.graph.alias_of.push_back(-1);
      p.graph.variable_bytes.push_back(0);
      for (const double us : us_[i]) {
        p.costs.times.push_back({us, 0, CostOrigin::kDeclared});
        p.costs.workspace.push_back(0);
      }
      p.costs.bytes.add(std::vector<int64_t>{bytes_[i]});
    }
    p.graph.finish();
    return p;
  }

 private:
  static void renumber_groups(PlanProblem& p) {
    std::vector<int32_t> number(static_cast<size_t>(p.num_groups), -1);
    int32_t next = 0;
    for (int32_t& g : p.group) {
      int32_t& n = number[static_cast<size_t>(g)];
      if (n < 0) n = next++;
      g = n;
    }
    p.num_groups = next;
  }

  PlanProblem p_;
  LinkCost link_ = {0, 1, -1, CostOrigin::kDeclared};
  std::vector<std::vector<double>> us_;
  std::vector<std::vector<int32_t>> inputs_;
  std::vector<int64_t> bytes_;
};

}  // namespace berth::testing

#endif  // BERTH_PLANNER_PROBLEM_TESTING_H_
