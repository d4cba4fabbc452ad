// Bounds on a step's time against all plans of small problems.

#include "place/planner/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "place/decode.h"
#include "place/planner/check.h"
#include "place/planner/models.h"
#include "place/random_steps.h"

namespace berth {
namespace {

using place_tests::pick;

// The shortest step of all placements and orders, by trying them.
class AllPlans {
 public:
  explicit AllPlans(const PlanProblem& p)
      : p_(p), decoder_(p.graph, p.costs), allowed_(allowed_of_groups(p)) {
    group_device_.assign(static_cast<size_t>(p.num_groups), 0);
    plan_.device.assign(static_cast<size_t>(p.num_ops()), 0);
  }
  double shortest() {
    place(0);
    return best_;
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
      if (!(allowed_[group] >> d & 1)) continue;
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
      if (!timed) return;  // when it comes makes no difference
    }
    if (last) best_ = std::min(best_, decoder_.decode(plan_));
  }
  void add(int32_t op, int32_t by) {
    for (const int32_t v : p_.graph.values[op]) {
      for (const int32_t r : p_.graph.readers[v]) missing_[r] += by;
    }
    for (const int32_t f : p_.graph.followers[op]) missing_[f] += by;
  }

  const PlanProblem& p_;
  Decoder decoder_;
  std::vector<DeviceMask> allowed_;
  std::vector<int32_t> group_device_, missing_;
  std::vector<uint8_t> done_;
  PlacePlan plan_;
  double best_ = std::numeric_limits<double>::infinity();
};

PlanProblem random_problem(std::mt19937& r, int32_t nodes, int32_t devices,
                           bool simple) {
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
  const DeviceMask all = (DeviceMask{1} << devices) - 1;
  for (int32_t i = 0; i < nodes; ++i) {
    const DeviceMask some = static_cast<DeviceMask>(r()) & all;
    p.allowed.push_back(pick(r, 6) == 0 && some ? some : all);
    p.group.push_back(i > 0 && pick(r, 6) == 0 ? pick(r, i) : i);
  }
  p.num_groups = nodes;
  return p;
}

struct Gaps {
  double sum = 0;
  int count = 0, tight = 0;
};

void compare(std::mt19937& r, int32_t nodes, int32_t devices, bool simple,
             Gaps& gaps) {
  const PlanProblem p = random_problem(r, nodes, devices, simple);
  const double best = AllPlans(p).shortest();
  if (best == std::numeric_limits<double>::infinity()) return;
  for (const double upper :
       {best * 1.3, std::numeric_limits<double>::infinity()}) {
    const Bound b = bound_steps(p, Budget::of_moves(100000, 1), upper);
    ASSERT_LE(b.value, best) << nodes << " nodes on " << devices;
    ASSERT_EQ(b.value > 0 ? check_windows(p, b.witness) : "", "");
    if (best <= 0) continue;
    gaps.sum += 1 - b.value / best;
    gaps.tight += b.value > best * (1 - 1e-6);
    ++gaps.count;
  }
}

TEST(BoundSteps, IsAboveNoPlanOfSmallProblems) {
  std::mt19937 r(1);
  Gaps gaps;
  for (int k = 0; k < 1000 && !HasFatalFailure(); ++k) {
    compare(r, 4 + pick(r, 3), 2, false, gaps);
    compare(r, 4 + pick(r, 2), 3, false, gaps);
    compare(r, 4 + pick(r, 3), 2, true, gaps);
    compare(r, 4 + pick(r, 2), 3, true, gaps);
  }
  ASSERT_GT(gaps.count, 4000);
  std::printf("mean gap %.2f %%, %d of %d are tight\n",
              100 * gaps.sum / gaps.count, gaps.tight, gaps.count);
}

}  // namespace
}  // namespace berth
