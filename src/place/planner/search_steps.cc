// Latency: list scheduling by many rules, then annealing from the best of it.

#include <algorithm>
#include <limits>
#include <mutex>

#include "place/planner/anneal_steps.h"
#include "place/planner/list_schedule.h"
#include "place/planner/models.h"
#include "place/planner/step_units.h"

namespace berth {

namespace {

class StepSearch {
 public:
  StepSearch(const StepUnits& units, const Budget& budget, uint64_t seed)
      : units_(units), budget_(budget), seed_(seed) {}

  Found run() {
    const int streams = budget_.num_streams();
    std::vector<Found> found(static_cast<size_t>(streams));
    run_streams(streams, budget_.threads(),
                [&](int s) { found[static_cast<size_t>(s)] = stream(s); });
    Found best;
    int64_t moves = 0;
    for (Found& f : found) {
      moves += f.moves;
      if (f.value < best.value) best = std::move(f);
    }
    best.moves = moves;
    return best;
  }

 private:
  Found stream(int s) {
    StreamRandom random(seed_, static_cast<uint64_t>(s));
    StepAnnealer annealer(units_, random);
    ListScheduler lists(units_);
    PlacePlan start;
    double least = std::numeric_limits<double>::infinity();
    for (const ListRule& rule : list_rules()) {
      const PlacePlan& plan = lists.run(rule, random);
      annealer.count_move();
      const double energy = annealer.start(plan);
      if (energy < least) least = energy, start = plan;
    }
    const int64_t most = budget_.moves_per_stream();
    annealer.start(start);
    annealer.run({.hot = .005, .cold = .00002}, most,
                 [&](int64_t moves) { return budget_.spent(moves); });
    return {annealer.best(), annealer.best_us(), annealer.moves()};
  }

  const StepUnits& units_;
  const Budget& budget_;
  uint64_t seed_;
};

}  // namespace

Found search_steps(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed) {
  const StepUnits units(problem);
  if (std::find(units.allowed.begin(), units.allowed.end(), DeviceMask{0}) !=
      units.allowed.end()) {
    return {};
  }
  return StepSearch(units, budget, seed).run();
}

}  // namespace berth
