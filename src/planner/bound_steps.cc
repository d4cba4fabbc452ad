// The bound on a step's time: its longest path, counting ops that must share a
// device one after the other; the largest group; the work of all devices.

#include <algorithm>
#include <cmath>

#include "base/infinity.h"
#include "planner/models.h"
#include "planner/step_graph.h"

namespace berth {

namespace {

constexpr double kBoundRounding = 1e-9;  // subtracted from what is proved

double longest_path(const StepGraph& g) {
  const std::vector<double> before = joined_starts(g, false);
  const std::vector<double> after = joined_starts(g, true);
  double longest = 0;
  for (int32_t i = 0; i < g.num_ops(); ++i) {
    double through = kInfinity;
    for (size_t k = 0; k < g.num_kinds(); ++k) {
      const size_t at = static_cast<size_t>(i) * g.num_kinds() + k;
      through = std::min(through, before[at] + g.time[at] + after[at]);
    }
    if (through < kInfinity) longest = std::max(longest, through);
  }
  return longest;
}

// Per group and kind [group * kinds + kind]: the time of its ops there.
std::vector<double> times_of_groups(const StepGraph& g) {
  const size_t kinds = g.num_kinds();
  std::vector<double> time(g.num_groups * kinds, 0);
  for (int32_t i = 0; i < g.num_ops(); ++i) {
    for (size_t k = 0; k < kinds; ++k) {
      time[g.group[i] * kinds + k] += g.time_on(i, k);
    }
  }
  return time;
}

}  // namespace

Bound bound_steps(const PlanProblem& p, const Budget&) {
  const StepGraph g(p);
  const size_t kinds = g.num_kinds();
  const std::vector<double> time = times_of_groups(g);
  double largest = 0;
  for (size_t at = 0; at < time.size(); at += kinds) {
    largest =
        std::max(largest, *std::min_element(&time[at], &time[at] + kinds));
  }
  const SumProof work = prove_by_sum(time, g.kind_devices);
  const double path = std::max(longest_path(g), largest);
  const double value = std::max(path, work.worth) * (1 - kBoundRounding);
  Bound b;
  if (!(value > 0) || std::isinf(value)) return b;
  b.value = value;
  b.how = path >= work.worth ? "longest path" : "work of all devices";
  std::vector<double> weight(p.num_devices(), 0);
  for (size_t k = 0; k < kinds; ++k) {
    for (DeviceSet m = g.kind_devices[k]; m; m.drop_first()) {
      weight[m.first()] = work.prices[k];
    }
  }
  b.witness = {"path", value, {{"weight", std::move(weight)}}};
  return b;
}

}  // namespace berth
