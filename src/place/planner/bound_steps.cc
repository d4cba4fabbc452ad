// The bound on a step's time: first the devices' total work, then windows.

#include <cmath>

#include "base/infinity.h"
#include "place/planner/models.h"
#include "place/planner/step_graph.h"
#include "place/planner/windows.h"

namespace berth {

namespace {

constexpr double kBoundRounding = 1e-9;  // subtracted from what is proved
constexpr double kWorkPerMove = 400;     // when the budget counts moves
constexpr double kWorkPerSecond = 2e7;
constexpr int kWeightRounds = 60;  // of weights

// How much a unit of time on each kind of device counts, chosen so that the
// least count of all ops is a large share of what all devices can do in a unit
// of time. Each op goes where it counts least; kinds that get more than their
// share become dearer. Any weights give a valid proof.
std::vector<double> choose_weights(const StepGraph& g) {
  const size_t kinds = g.num_kinds();
  std::vector<double> weight(kinds, 1), best = weight, load(kinds);
  double most = 0;
  for (int round = 0; round < (kinds > 1 ? kWeightRounds : 0); ++round) {
    std::fill(load.begin(), load.end(), 0.0);
    double count = 0, capacity = 0, all = 0;
    for (int32_t i = 0; i < g.num_ops(); ++i) {
      size_t cheapest = 0;
      double least = kInfinity;
      for (size_t k = 0; k < kinds; ++k) {
        const double c = weight[k] * g.time_on(i, k);
        if (c < least) least = c, cheapest = k;
      }
      if (!(least > 0) || std::isinf(least)) continue;
      count += least;
      load[cheapest] += g.time_on(i, cheapest);
    }
    for (size_t k = 0; k < kinds; ++k) {
      const int devices = g.kind_devices[k].count();
      capacity += weight[k] * devices;
      load[k] /= devices;
      all += load[k];
    }
    if (!(all > 0) || std::isinf(all)) break;
    if (count / capacity > most) {
      most = count / capacity;
      best = weight;
    }
    double largest = 0;
    for (size_t k = 0; k < kinds; ++k) {
      const double share = load[k] / all * static_cast<double>(kinds);
      weight[k] *= std::exp((std::min(share, 4.0) - 1) / (round + 1));
      largest = std::max(largest, weight[k]);
    }
    for (double& w : weight) w = std::max(w / largest, 1e-6);
  }
  return best;
}

Witness witness_of(const PlanProblem& p, const StepGraph& g,
                   const std::vector<double>& weight, const Windows& windows,
                   double target) {
  std::vector<double> per_device(p.num_devices(), 1);
  for (size_t k = 0; k < g.num_kinds(); ++k) {
    for (DeviceSet m = g.kind_devices[k]; m; m.drop_first()) {
      per_device[m.first()] = weight[k];
    }
  }
  std::vector<double> back, op, value, from, until, size;
  for (const Windows::Step& s : windows.steps()) {
    back.push_back(s.back);
    op.push_back(s.op);
    value.push_back(s.value);
    from.push_back(s.from);
    until.push_back(s.until);
    size.push_back(s.size);
  }
  Witness w;
  w.kind = "windows";
  w.target = target;
  w.arrays = {{"weight", per_device}, {"back", back}, {"op", op},
              {"value", value},       {"from", from}, {"until", until},
              {"size", size}};
  return w;
}

}  // namespace

// `upper` is used only to tell when the bound is good enough.
Bound bound_steps(const PlanProblem& p, const Budget& budget, double upper) {
  const StepGraph graph(p);
  const std::vector<double> weight = choose_weights(graph);
  Windows windows(graph, weight);
  // Part of a thread's work: where more work proves nothing more, the search
  // has better uses for it.
  const double most = budget.counts_moves()
                          ? kWorkPerMove *
                                static_cast<double>(budget.moves_per_stream()) *
                                Budget::kStreams
                          : kWorkPerSecond * budget.seconds_left();
  const double value = windows.deduce([&] {
    return windows.bound() >= upper ||
           static_cast<double>(windows.work()) > most ||
           (!budget.counts_moves() && budget.spent(0) >= 1);
  }) * (1 - kBoundRounding);
  Bound b;
  if (!(value > 0) || std::isinf(value)) return b;
  b.value = value;
  b.how = windows.steps().empty() ? "longest path"
                                  : "windows of ops that share devices";
  b.witness = witness_of(p, graph, weight, windows, value);
  return b;
}

}  // namespace berth
