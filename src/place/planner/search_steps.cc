// Latency: list scheduling by many rules, then annealing from the best plan.

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/infinity.h"
#include "place/planner/anneal_steps.h"
#include "place/planner/first_tries.h"
#include "place/planner/list_schedule.h"
#include "place/planner/models.h"
#include "place/planner/step_units.h"
#include "place/planner/window_search.h"
#include "place/planner/window_steps.h"

namespace berth {

namespace {

// Plans made by rules, per stream, and the share of the budget for them.
constexpr int kListPlans = 24;
constexpr double kListShare = 0.3, kListShareOfMany = 0.5,
                 kListShareOfNone = 0.9;  // with many ops, while none fits
constexpr int kTriesPerList = 4;
// Other borders of the best stages, per stream.
constexpr double kClimbShare = 0.1;
constexpr int kMostClimbs = 2000, kClimbsInMoves = 40;
// Positions for ops that one pass of list scheduling tries.
constexpr int32_t kMostListSlots = 2'000'000;
// From this many ops on, parts of the plan are annealed: decodes are slow.
constexpr int32_t kWindowed = 700;

class StepSearch {
 public:
  StepSearch(const StepUnits& units, const Budget& budget, uint64_t seed)
      : units_(units), budget_(budget), seed_(seed), tries_(units, true) {
    streams_.resize(budget.num_streams());
  }

  Found run() {
    run_streams(budget_.num_streams(), budget_.threads(), [&](int number) {
      auto& s = streams_[number];
      s = std::make_unique<Stream>(units_, seed_, number);
      make_lists(*s);
    });
    const Stream* first = nullptr;
    for (const auto& s : streams_) {
      if (!first || s->energy < first->energy) first = s.get();
    }
    const PlacePlan start = first->start;
    start_ = {first->name, first->annealer.best_us()};
    if (units_.num_ops >= kWindowed && has_windows(units_) &&
        std::isfinite(first->energy)) {
      return by_windows(start);
    }
    run_streams(budget_.num_streams(), budget_.threads(),
                [&](int number) { anneal(*streams_[number], start); });
    return best();
  }

 private:
  struct Stream {
    Stream(const StepUnits& units, uint64_t seed, int number)
        : number(number),
          random(seed, static_cast<uint64_t>(number)),
          lists(units),
          orders(units),
          annealer(units, random) {}
    int number;
    StreamRandom random;
    ListScheduler lists;
    DeviceScheduler orders;
    StepAnnealer annealer;
    PlacePlan start;
    std::string name;  // of the start
    double energy = kInfinity;
    int best_try = -1;  // of the first tries
    double try_energy = kInfinity;
  };

  bool spent(const Stream& s, double share) const {
    const int64_t moves = s.annealer.moves();
    return budget_.spent(moves) >= share || moves >= budget_.moves_per_stream();
  }

  // Returns the energy of the plan.
  double try_start(Stream& s, const std::string& name,
                   const PlacePlan& plan) const {
    s.annealer.count_move();
    const double energy =
        s.annealer.start(plan, std::max(s.energy, s.try_energy));
    if (!s.start.device.empty() && energy >= s.energy) return energy;
    s.energy = energy;
    s.name = name;
    s.start = s.annealer.plan();
    return energy;
  }

  void make_lists(Stream& s) const {
    const auto& candidates = units_.problem.candidates;
    const size_t streams = budget_.num_streams();
    for (size_t k = static_cast<size_t>(s.number); k < candidates.size();
         k += streams) {
      if (spent(s, 1)) break;
      if (units_.keeps(candidates[k].plan)) {
        try_start(s, candidates[k].name, candidates[k].plan);
      }
    }
    const std::vector<ListRule>& rules = list_rules();
    int next = s.number;  // index among the first tries
    // A pass of list scheduling over many ops takes long and seldom keeps
    // limits.
    const bool tries_first = units_.num_ops >= kWindowed && units_.limited;
    for (size_t k = 0; k < kListPlans; ++k) {
      if (tries_first) try_several(s, next);
      if (!s.start.device.empty() && spent(s, list_share(s))) break;
      // Each stream begins with a different one.
      ListRule rule =
          k < rules.size()
              ? rules[(k + static_cast<size_t>(s.number)) % rules.size()]
              : random_rule(s.random, units_.problem.num_devices());
      if (rule.devices < units_.problem.num_devices()) {
        if (rule.devices == 0) rule.devices = most_devices();
        const PlacePlan& list = s.lists.run(rule, s.random);
        try_start(s, name_of(rule), list);
        if (spent(s, list_share(s))) break;
        // Its devices, each taking what has the longest path behind it.
        PlacePlan other = list;
        s.orders.run(DeviceScheduler::First::kPath, other);
        try_start(s, name_of(rule) + ", then by path", other);
      }
      if (!tries_first) try_several(s, next);
    }
    while (next < tries_.count() && !spent(s, list_share(s))) try_next(s, next);
    climb(s);
  }

  // Moves the borders of the stream's best stages while that makes them better.
  // Where there are few ops, annealing does that and more.
  void climb(Stream& s) const {
    if (s.best_try < 0 || units_.num_ops < kWindowed) return;
    const std::string name = tries_.name(s.best_try) + ", borders moved";
    StageCut cut = tries_.cut(s.best_try);
    for (int k = 0; k < kMostClimbs; ++k) {
      if (budget_.counts_moves() && k == kClimbsInMoves) return;
      if (spent(s, list_share(s) + kClimbShare)) return;
      StageCut other = cut;
      tries_.vary(other, s.random);
      PlacePlan plan;
      plan.device = tries_.devices(other);
      s.orders.run(other.order, plan);
      const double energy = try_start(s, name, plan);
      if (energy > s.try_energy) continue;
      s.try_energy = energy;
      cut = std::move(other);
    }
  }

  // With many ops, the rest of the search saves a few percent, and hardly finds
  // a plan that keeps limits.
  double list_share(const Stream& s) const {
    if (units_.num_ops >= kWindowed && std::isinf(s.annealer.best_us())) {
      return kListShareOfNone;
    }
    return units_.num_ops >= kWindowed ? kListShareOfMany : kListShare;
  }

  // For a pass over all ops; 0: all.
  int32_t most_devices() const {
    const int32_t most =
        std::max(kMostListSlots / std::max(units_.num_ops, 1), 4);
    return most < units_.problem.num_devices() ? most : 0;
  }

  // Alternates with lists, as either may be better; several, as they take less.
  void try_several(Stream& s, int& next) const {
    for (int tries = 0; tries < kTriesPerList; ++tries) try_next(s, next);
  }

  void try_next(Stream& s, int& next) const {
    if (next >= tries_.count()) return;
    if (!s.start.device.empty() && spent(s, list_share(s))) return;
    PlacePlan plan;
    const StageCut cut = tries_.cut(next);
    plan.device = tries_.devices(cut);
    s.orders.run(cut.order, plan);
    const double energy = try_start(s, tries_.name(next), plan);
    if (s.best_try < 0 || energy < s.try_energy) {
      s.best_try = next;
      s.try_energy = energy;
    }
    next += budget_.num_streams();
  }

  void anneal(Stream& s, const PlacePlan& start) const {
    if (spent(s, 1)) return;
    s.annealer.start(start);
    // The fewer ops there are, the larger the share of each.
    const double hot =
        (units_.limited ? 30 : 10) / std::pow(units_.num_ops + 3, 1.5);
    const double begin = budget_.spent(s.annealer.moves());
    s.annealer.run({.hot = hot, .cold = hot / 200}, budget_.moves_per_stream(),
                   [&](int64_t moves) {
                     const double gone = budget_.spent(moves);
                     if (gone >= 1 || budget_.enough(s.annealer.best_us())) {
                       return 1.0;
                     }
                     return (gone - begin) / (1 - begin);
                   });
  }

  Found by_windows(const PlacePlan& start) {
    std::vector<int64_t> moves;
    for (const auto& s : streams_) moves.push_back(s->annealer.moves());
    Found found;
    found.plan = start;
    found.start = start_;
    found.value = search_windows(units_, budget_, seed_, found.plan, moves);
    for (const int64_t m : moves) found.moves += m;
    return found;
  }

  Found best() const {
    Found found;
    found.start = start_;
    for (const auto& s : streams_) {
      found.moves += s->annealer.moves();
      const double us = s->annealer.best_us();
      if (!(us < found.value)) continue;
      found.value = us;
      found.plan = s->annealer.best();
    }
    return found;
  }

  const StepUnits& units_;
  const Budget& budget_;
  uint64_t seed_;
  FirstTries tries_;
  SearchStart start_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace

Found search_steps(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed) {
  const StepUnits units(problem);
  if (std::find(units.allowed.begin(), units.allowed.end(), DeviceSet{0}) !=
      units.allowed.end()) {
    return {};
  }
  return StepSearch(units, budget, seed).run();
}

}  // namespace berth
