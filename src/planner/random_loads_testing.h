// Random small throughput problems, and their best value by enumeration.

#ifndef BERTH_PLANNER_RANDOM_LOADS_TESTING_H_
#define BERTH_PLANNER_RANDOM_LOADS_TESTING_H_

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "planner/budget.h"
#include "planner/loads.h"
#include "planner/problem_testing.h"

namespace berth::testing {

enum class Payment { kTouch, kLinks };

// 5 to 9 ops on 2 or 3 devices of 1 or 2 classes; often with limits, groups,
// masks, free devices and every copy rule.
inline PlanProblem random_load_problem(uint64_t seed, Payment payment) {
  StreamRandom r(seed, payment == Payment::kTouch ? 1 : 2);
  ProblemMaker m(PlanModel::kLoad);
  const int classes = 1 + static_cast<int>(r.below(2));
  const int devices = 2 + static_cast<int>(r.below(2));
  const bool limits = r.below(3) == 0;
  for (int c = 0; c < classes; ++c) m.device_class("C" + std::to_string(c));
  const bool equal = r.below(2) == 0;
  const auto rule = static_cast<CopyRule>(r.below(4));
  for (int d = 0; d < devices; ++d) {
    m.device("D:" + std::to_string(d),
             equal && d > 0 ? 0 : static_cast<int>(r.below(classes)),
             limits ? 6 + static_cast<int>(r.below(10)) : 0,
             equal ? rule : static_cast<CopyRule>(r.below(4)),
             payment == Payment::kTouch && r.below(4) == 0);
  }
  const int ops = 5 + static_cast<int>(r.below(5));
  const double dear = r.uniform() * 3;
  for (int i = 0; i < ops; ++i) {
    std::vector<double> us;
    for (int c = 0; c < classes; ++c) {
      us.push_back(r.below(6) == 0 ? 0 : 1 + r.below(9));
    }
    std::vector<int> inputs;
    for (int j = 0; j < i; ++j) {
      if (r.below(i < 4 ? 2 : 3) == 0) inputs.push_back(j);
    }
    const auto bytes = static_cast<int>(r.below(6));
    const double touch = dear * r.uniform();
    m.op("op" + std::to_string(i), us, inputs, bytes,
         payment == Payment::kTouch ? touch : -1);
    m.hold(i, r.below(5));
    if (r.below(8) == 0) {
      m.allow(i, 1 + r.below((1U << devices) - 1));
    }
  }
  if (r.below(3) == 0) m.together(0, ops - 1);
  if (r.below(3) == 0) m.together(1, 2);
  m.links(dear * r.uniform(), 1 + 3 * r.uniform());
  PlanProblem p = m.make();
  if (payment == Payment::kLinks && seed % 3 == 0) {  // one bus, or two
    for (size_t k = 0; k < p.costs.links.size(); ++k) {
      p.costs.links[k].shared = 5 + static_cast<int32_t>(k % (1 + seed % 2));
      if (seed % 5 == 0)
        p.costs.links[k].shared.add(static_cast<int32_t>(k % 3));
    }
  }
  return p;
}

// The least value of all placements; infinite: none keeps the limits.
inline double best_load(const PlanProblem& problem) {
  const LoadProblem p(problem);
  std::vector<int32_t> device(static_cast<size_t>(p.num_units()), 0);
  double best = std::numeric_limits<double>::infinity();
  while (true) {
    best = std::min(best, load_value(p, device));
    size_t i = 0;
    while (i < device.size() && ++device[i] == p.num_devices()) device[i++] = 0;
    if (i == device.size()) return best;
  }
}

}  // namespace berth::testing

#endif  // BERTH_PLANNER_RANDOM_LOADS_TESTING_H_
