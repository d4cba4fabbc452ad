// Latency: list scheduling by many rules, then annealing from the best plan; a
// series of searches.

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/infinity.h"
#include "planner/anneal_steps.h"
#include "planner/first_tries.h"
#include "planner/list_schedule.h"
#include "planner/models.h"
#include "planner/step_units.h"

namespace berth {

namespace {

// Plans made by rules, per stream, and the share of the budget for them.
constexpr size_t kListPlans = 24;
constexpr double kNoise = 0.4;  // of rules that were followed before
constexpr double kListShare = 0.3, kListShareOfMany = 0.5,
                 kListShareOfNone = 0.9;  // with many ops, while none fits
constexpr int kTriesPerList = 4, kPlainTries = 20;  // plain: not varied
// From kLong ops on, timing is slow, and borders of the best stages are
// moved. From kMany on, annealing the whole plan hardly gets anywhere: borders
// are moved for longer.
constexpr int32_t kLong = 700, kMany = 4000;
constexpr double kClimb = 0.2, kClimbTight = 0.1, kClimbMany = 0.4;
// Positions for ops that one pass of list scheduling tries.
constexpr int32_t kMostListSlots = 2'000'000;
// Moves per stream of the first search, the slower the fewer.
constexpr int64_t kFirstMoves = 1000, kOpsOfHalf = 16'000;
// What a start of many ops counts as: about as many moves as take its time.
// Moves under limits are slow.
constexpr int64_t kMovesOfStart = 24, kSlowMovesOfStart = 12;

class StepSearch {
 public:
  StepSearch(const StepUnits& units, const Budget& budget, uint64_t seed)
      : units_(units),
        many_(units.num_ops >= kMany),
        start_moves_(units.num_ops < kLong ? 1
                     : units.limited       ? kSlowMovesOfStart
                                           : kMovesOfStart),
        series_(budget, kFirstMoves * kOpsOfHalf / (kOpsOfHalf + units.num_ops),
                seed),
        tries_(units, true),
        streams_(budget.num_streams()) {}

  Found run() {
    while (series_.next(found_.value)) {
      series_.run([&](SearchStream& search) {
        auto& s = streams_[search.number()];
        if (!s) {
          s = std::make_unique<Stream>(units_, search);
          try_candidates(*s);
        }
        make_lists(*s);
      });
      improve();
    }
    found_.moves = series_.moves();
    return std::move(found_);
  }

 private:
  struct Stream {
    Stream(const StepUnits& units, SearchStream& stream)
        : search(stream),
          next_try(stream.number()),
          lists(units),
          orders(units),
          annealer(units, stream.random) {}
    SearchStream& search;
    int next_try;  // of the first tries
    size_t next_list = 0;
    ListScheduler lists;
    DeviceScheduler orders;
    StepAnnealer annealer;
    PlacePlan start;
    SearchStart begun;  // its name and value
    double energy = kInfinity;
    // The best stages.
    StageCut cut;
    std::string cut_name;
    double cut_energy = kInfinity;
  };

  // Returns the energy of the plan.
  double try_start(Stream& s, const std::string& name, const PlacePlan& plan) {
    s.search.take(start_moves_);
    const double energy =
        s.annealer.start(plan, std::max(s.energy, s.cut_energy));
    if (!s.start.device.empty() && energy >= s.energy) return energy;
    s.energy = energy;
    s.begun = {name, s.annealer.fits() ? energy : kInfinity};
    s.start = s.annealer.plan();
    return energy;
  }

  void try_candidates(Stream& s) {
    const auto& candidates = units_.problem.candidates;
    for (size_t k = s.search.number(); k < candidates.size();
         k += streams_.size()) {
      if (s.search.spent() < 1 && units_.keeps(candidates[k].plan)) {
        try_start(s, candidates[k].name, candidates[k].plan);
      }
    }
  }

  void make_lists(Stream& s) {
    // List scheduling of many ops takes long and seldom keeps limits.
    const bool tries_first = units_.num_ops >= kLong && units_.limited;
    while (s.next_list < kListPlans) {
      if (tries_first) try_several(s);
      if (!s.start.device.empty() && s.search.spent() >= list_share(s)) break;
      // Each stream begins with a different one.
      const size_t k = s.next_list++;
      ListRule rule =
          kListRules[(k + s.search.number()) % std::size(kListRules)];
      if (k >= std::size(kListRules))
        rule.noise = kNoise * s.search.random.uniform();
      if (rule.devices < units_.problem.num_devices()) {
        if (rule.devices == 0) rule.devices = most_devices();
        const PlacePlan& list = s.lists.run(rule, s.search.random);
        try_start(s, name_of(rule), list);
        if (s.search.spent() >= list_share(s)) break;
        // Its devices, each taking the op that the longest path follows.
        PlacePlan other = list;
        s.orders.run(DeviceScheduler::First::kPath, other);
        try_start(s, name_of(rule) + ", then by path", other);
      }
      if (!tries_first) try_several(s);
    }
    while (s.next_try < tries_.count() && s.search.spent() < list_share(s))
      try_next(s);
    climb(s);
  }

  // Moves the borders of the stream's best stages while that makes them better.
  // Where there are few ops, annealing does that and more.
  void climb(Stream& s) {
    if (s.cut_name.empty() || units_.num_ops < kLong) return;
    // Under limits, later searches spend on this what lists no longer need.
    const bool tight = units_.limited;
    const double share = many_ ? kClimbMany : tight ? kClimbTight : kClimb;
    const double lists = many_ || tight ? 1 : s.search.spent();
    const double until = std::min(lists, list_share(s)) + share;
    while (s.search.spent() < std::min(until, 1.0)) {
      StageCut other = s.cut;
      tries_.vary(other, s.search.random);
      try_stages(s, std::move(other), s.cut_name + ", borders moved");
    }
  }

  // With many ops, the rest saves a few percent and hardly finds a plan that
  // keeps limits; without them, plain tries come before moved borders.
  double list_share(const Stream& s) const {
    if (units_.num_ops < kLong) return kListShare;
    const bool none = !found_.any() && std::isinf(s.annealer.best_us());
    const bool early = many_ && !units_.limited && s.next_try < kPlainTries;
    return none || early ? kListShareOfNone : kListShareOfMany;
  }

  // For a pass over all ops; 0: all.
  int32_t most_devices() const {
    const int32_t most =
        std::max(kMostListSlots / std::max(units_.num_ops, 1), 4);
    return most < units_.problem.num_devices() ? most : 0;
  }

  // Alternates with lists, as either may be better; several, as they take less.
  void try_several(Stream& s) {
    for (int tries = 0; tries < kTriesPerList; ++tries) try_next(s);
  }

  void try_next(Stream& s) {
    if (s.next_try >= tries_.count()) return;
    if (!s.start.device.empty() && s.search.spent() >= list_share(s)) return;
    const int number = std::exchange(s.next_try, s.next_try + streams_.size());
    if (try_stages(s, tries_.cut(number), tries_.name(number))) {
      s.cut_name = tries_.name(number);
    }
  }

  // Returns whether they are the stream's best stages.
  bool try_stages(Stream& s, StageCut cut, const std::string& name) {
    PlacePlan plan;
    plan.device = tries_.devices(cut);
    s.orders.run(cut.order, plan);
    const double energy = try_start(s, name, plan);
    if (energy > s.cut_energy) return false;
    s.cut_energy = energy;
    s.cut = std::move(cut);
    return true;
  }

  // Begins with the best start if that is new, else with the best plan.
  void improve() {
    const Stream& first = **std::ranges::min_element(
        streams_, {}, [](const auto& s) { return s->energy; });
    PlacePlan plan = found_.plan;
    if (first.energy < start_energy_ || !found_.any()) {
      plan = first.start;
      start_ = first.begun;
      start_energy_ = first.energy;
    }
    series_.run([&](SearchStream& s) { anneal(*streams_[s.number()], plan); });
    for (const auto& s : streams_) {
      if (!(s->annealer.best_us() < found_.value)) continue;
      found_.value = s->annealer.best_us();
      found_.plan = s->annealer.best();
      found_.start = start_;
    }
  }

  void anneal(Stream& s, const PlacePlan& start) {
    const double begin = s.search.spent();
    if (begin >= 1) return;
    s.annealer.start(start);
    // The fewer ops there are, the larger the share of each.
    const double hot =
        (units_.limited ? 30 : 10) / std::pow(units_.num_ops + 3, 1.5);
    const auto share = [&](int64_t moves) {
      const bool enough = s.search.enough(s.annealer.best_us());
      return enough ? 1 : (s.search.spent(moves) - begin) / (1 - begin);
    };
    s.search.take(s.annealer.run({.hot = hot, .cold = hot / 200},
                                 s.search.moves_left(), share));
    // While none fits, the next search goes on from here.
    if (found_.any() || std::isfinite(s.annealer.best_us())) return;
    if (s.annealer.energy() >= s.energy) return;
    s.energy = s.annealer.energy();
    s.start = s.annealer.plan();
  }

  const StepUnits& units_;
  const bool many_;
  const int64_t start_moves_;
  SearchSeries series_;
  FirstTries tries_;
  std::vector<std::unique_ptr<Stream>> streams_;
  SearchStart start_;  // the newest
  double start_energy_ = kInfinity;
  Found found_;
};

}  // namespace

Found search_steps(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed) {
  const StepUnits units(problem);
  if (std::ranges::count(units.allowed, DeviceSet{0}) > 0) return {};
  return StepSearch(units, budget, seed).run();
}

}  // namespace berth
