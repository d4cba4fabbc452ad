// The search for throughput plans: first tries, then annealing of many coarse
// problems, then of the problem itself.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/infinity.h"
#include "planner/coarsen.h"
#include "planner/first_tries.h"
#include "planner/load_state.h"
#include "planner/models.h"

namespace berth {

namespace {

struct LoadPlan {
  std::vector<int32_t> device;  // per unit; empty: none
  double value = kInfinity;
};

constexpr int64_t kBlock = 128;  // moves between budget checks
constexpr size_t kSimilar = 12;  // units of adjacent work that count as similar

// With up to this many units a problem is small: variety finds its best plan,
// not refinement.
constexpr int32_t kFewUnits = 24;

struct Cooling {
  double hot = 0.03;     // temperatures, as shares of the load
  double cold = 0.0005;  // at the end
  double end = 1;        // ends at this share of the stream's budget
  int squarings = 4;     // of LoadState
};

// Levels loads that differ by little: a norm of small p hardly sees which one
// is the highest. Only for plans that keep all limits.
constexpr Cooling kSharp = {.hot = 1e-6, .cold = 1e-8, .squarings = 8};

// Anneals a state, which stays where it ended. `best` becomes the best plan
// visited that keeps all limits, if that is better.
class Annealer {
 public:
  Annealer(LoadState& state, SearchStream& stream, LoadPlan& best)
      : s_(state),
        p_(state.problem()),
        stream_(stream),
        best_(best),
        units_(static_cast<uint32_t>(p_.num_units())),
        spread_(s_.root(static_cast<double>(p_.num_machines()))) {
    root_ = s_.root(s_.energy());
    noted_.assign(p_.bytes.size(), 0);
    rank_units();
    if (p_.num_units() <= kFewUnits) {
      cuts_ = 20;
      anywhere_ = 4;
    }
    note_best();
  }

  void run(const Cooling& c) {
    const double begin = stream_.spent();
    while (!stream_.enough(best_.value)) {
      const double now = stream_.spent();
      if (now >= c.end) break;
      const double gone = (now - begin) / (c.end - begin);
      if (!(gone < 1)) break;
      temperature_ = root_ * c.hot * std::pow(c.cold / c.hot, gone);
      const int64_t n = stream_.take(kBlock);
      if (n == 0) break;
      for (int64_t k = 0; k < n; ++k) try_one();
    }
  }

 private:
  void rank_units() {
    const auto work = [&](int32_t u) { return p_.work[u * p_.num_classes]; };
    by_work_.resize(units_);
    rank_.resize(units_);
    std::iota(by_work_.begin(), by_work_.end(), 0);
    std::ranges::sort(by_work_, [&](int32_t a, int32_t b) {
      return work(a) != work(b) ? work(a) < work(b) : a < b;
    });
    for (uint32_t k = 0; k < units_; ++k) {
      rank_[by_work_[k]] = static_cast<int32_t>(k);
    }
  }

  struct Step {
    int32_t unit, to;
  };

  void try_one() {
    const double x = -std::log(1 - stream_.random.uniform());
    const uint64_t bits = stream_.random.next();
    const uint32_t what = bits >> 10 & 127;
    const int32_t unit = (bits >> 32) * units_ >> 32;
    threshold_ = s_.power(root_ + temperature_ * x);
    if (what < cuts_ && !s_.cut_nets().empty()) {
      try_cut();
    } else if (what < 92 || p_.nets[unit].empty()) {
      try_unit(unit, bits);
    } else if (what < 112) {
      try_similar(unit);
    } else if (what < 118) {
      try_swap(unit, static_cast<int32_t>(below(units_)));
    } else if (what < 125) {
      try_pair(unit);
    } else {
      try_net(unit);
    }
  }

  uint32_t below(size_t n) { return stream_.random.below(n); }

  int32_t neighbour(int32_t unit) {
    const auto nets = p_.nets[unit];
    const auto pins = p_.pins[nets[below(nets.size())]];
    return pins[below(pins.size())];
  }

  bool may(int32_t unit, int32_t to) const {
    return to != s_.device(unit) && p_.allowed[unit].has(to);
  }

  void try_move(int32_t unit, int32_t to) {
    if (!may(unit, to) || s_.price(unit, to) > threshold_) return;
    s_.apply();
    note(unit);
    accepted();
  }

  // Moves a unit of a split value to another device of that value.
  void try_cut() {
    const auto nets = s_.cut_nets();
    const auto pins = p_.pins[nets[below(nets.size())]];
    const int32_t unit = pins[below(pins.size())];
    try_move(unit, s_.device(pins[below(pins.size())]));
  }

  // Moves a unit to where a neighbour is, sometimes anywhere.
  void try_unit(int32_t unit, uint64_t bits) {
    const bool anywhere = (bits >> 17 & 7) < anywhere_ || p_.nets[unit].empty();
    try_move(unit, anywhere ? static_cast<int32_t>(below(p_.limit.size()))
                            : s_.device(neighbour(unit)));
  }

  // Exchanges units of nearly equal work, to balance loads that differ by less
  // than any unit.
  void try_similar(int32_t unit) {
    const size_t at = static_cast<size_t>(rank_[unit]) + 1 + below(kSimilar);
    if (at < by_work_.size()) try_swap(unit, by_work_[at]);
  }

  void try_swap(int32_t unit, int32_t other) {
    const int32_t a = s_.device(unit), b = s_.device(other);
    if (!may(unit, b) || !may(other, a)) return;
    steps_.assign({{unit, b}, {other, a}});
    try_steps();
  }

  void try_pair(int32_t unit) {
    const int32_t other = neighbour(unit);
    const int32_t to = s_.device(neighbour(neighbour(other)));
    steps_.clear();
    if (may(unit, to)) steps_.push_back({unit, to});
    if (other != unit && may(other, to)) steps_.push_back({other, to});
    try_steps();
  }

  void try_net(int32_t unit) {
    const auto nets = p_.nets[unit];
    const int32_t n = nets[below(nets.size())];
    if (p_.pins[n].size() > 64) return;
    const int32_t to = s_.device(neighbour(unit));
    steps_.clear();
    for (const int32_t u : p_.pins[n]) {
      if (may(u, to)) steps_.push_back({u, to});
    }
    try_steps();
  }

  // Makes all of the moves, or none.
  void try_steps() {
    if (steps_.empty()) return;
    for (Step& step : steps_) {
      const int32_t from = s_.device(step.unit);
      s_.move(step.unit, step.to);
      step.to = from;
    }
    if (s_.energy() <= threshold_) {
      for (const Step& step : steps_) note(step.unit);
      accepted();
      return;
    }
    for (size_t k = steps_.size(); k-- > 0;) {
      s_.move(steps_[k].unit, steps_[k].to);
    }
  }

  void accepted() {
    root_ = s_.root(s_.energy());
    // The highest load is at least the norm divided by this.
    if (root_ * s_.scale() < best_.value * spread_) note_best();
  }

  // Notes a unit that may differ from the best plan.
  void note(int32_t unit) {
    if (noted_[unit]) return;
    noted_[unit] = 1;
    changed_.push_back(unit);
  }

  void note_best() {
    if (!s_.keeps_limits() || s_.highest() >= best_.value * (1 - 1e-12)) return;
    best_.value = s_.highest();
    if (!mine_) {
      best_.device.assign(s_.devices().begin(), s_.devices().end());
      mine_ = true;
    }
    for (const int32_t u : changed_) {
      best_.device[u] = s_.device(u);
      noted_[u] = 0;
    }
    changed_.clear();
  }

  LoadState& s_;
  const LoadProblem& p_;
  SearchStream& stream_;
  LoadPlan& best_;
  uint32_t units_;
  double spread_;
  uint32_t cuts_ = 70, anywhere_ = 1;  // shares of moves: of 128 and of 8
  double root_ = 0, temperature_ = 0, threshold_ = 0;
  std::vector<Step> steps_;
  std::vector<int32_t> by_work_, rank_;  // units, and each one's rank
  bool mine_ = false;                    // this stream found the best plan
  std::vector<int32_t> changed_;
  std::vector<uint8_t> noted_;
};

// Shares of a stream's budget.
constexpr double kCoarseEnd = 0.4;
constexpr double kFewCoarseEnd = 0.9;  // for few units
constexpr double kTriesEnd = 0.25;
constexpr double kSharpBegin = 0.9;
constexpr int kSureTries = 2;  // per stream
constexpr int64_t kFirstLoadMoves = 20000, kFirstLoadMovesPerUnit = 8;
constexpr int kUnitsPerMoveOfStart = 8;
constexpr int kLoadRounds = 10;
// Larger problems are first shrunk to about this many units.
constexpr int32_t kManyUnits = 3000;

// Puts each unit, of those devices that it allows, on the one where it would
// end first; ignores limits.
std::vector<int32_t> spread_out(const LoadProblem& p) {
  std::vector<double> load(p.num_devices(), 0);
  std::vector<int32_t> device;
  for (int32_t u = 0; u < p.num_units(); ++u) {
    device.push_back(p.allowed[u].first());
    double least = kInfinity;
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      const double end = load[d] + p.work_on(u, d);
      if (end < least && p.allowed[u].has(d)) least = end, device[u] = d;
    }
    load[device[u]] += p.work_on(u, device[u]);
  }
  return device;
}

class StreamSearch {
 public:
  // `number`: each tries other kinds of orders first.
  StreamSearch(const LoadProblem& p, const LoadPlan& start,
               SearchStream& stream, int number)
      : p_(p), best_(start), stream_(stream), number_(number) {}

  // The first half: each stream finds a good plan.
  void explore() {
    p_.num_units() > kManyUnits ? explore_shrunk() : explore_all();
  }

  // The other half: continues from the best plan of all streams.
  void refine(const LoadPlan& start) {
    if (start.value < best_.value) best_ = start;
    const bool known = std::isfinite(best_.value);
    if (!known || p_.num_units() <= kManyUnits) {
      anneal(p_, {known ? 0.002 : 0.3, 2e-5, kSharpBegin}, best_);
    }
    if (std::isfinite(best_.value)) anneal(p_, kSharp, best_);
  }

  const LoadPlan& best() const { return best_; }

 private:
  void explore_all() {
    const int rounds = num_rounds();
    const double rounds_end =
        p_.num_units() <= kFewUnits ? kFewCoarseEnd : kCoarseEnd;
    for (int r = 0; r < rounds; ++r) {
      const double share = static_cast<double>(r + 1) / rounds;
      const double end = rounds_end * share;
      if (stream_.enough(best_.value)) break;
      if (stream_.spent() < end) coarse_round(r, end);
    }
  }

  void explore_shrunk() {
    const Clusters clusters = shrink(p_, kManyUnits, stream_.random);
    const LoadProblem small = contract(p_, clusters.of_unit, clusters.count);
    StreamSearch search(small, {spread_out(small)}, stream_, number_);
    search.explore_all();
    if (!(search.best().value < best_.value)) return;
    best_ = {project(clusters, search.best().device), search.best().value};
  }

  void anneal(const LoadProblem& p, const Cooling& cooling, LoadPlan& plan) {
    const double highest = std::ranges::max(machine_loads(p, plan.device));
    LoadState state(p, highest > 0 ? highest : 1, cooling.squarings);
    state.set(plan.device);
    Annealer(state, stream_, plan).run(cooling);
  }

  // Few moves are better spent on few rounds.
  int num_rounds() const {
    const double moves = static_cast<double>(stream_.moves_left());
    const double least = 400 + 40 * static_cast<double>(p_.num_units());
    return static_cast<int>(std::clamp(moves / least, 1.0, 1.0 * kLoadRounds));
  }

  void coarse_round(int round, double end) {
    const double begin = stream_.spent();
    constexpr std::array<double, 5> kCaps = {0.06, 0, 0.12, 0.25, 0.5};
    const bool few = p_.num_units() <= kFewUnits;  // no clusters
    const double cap = few ? 0 : kCaps[(round + number_) % kCaps.size()];
    const Clusters clusters = cluster_units(p_, cap, stream_.random);
    const LoadProblem coarse = contract(p_, clusters.of_unit, clusters.count);
    LoadPlan plan{spread_out(coarse)};
    const double middle = begin + (few ? 0.95 : 0.7) * (end - begin);
    anneal(coarse, {0.6, few ? 0.01 : 3e-4, middle}, plan);
    plan.device = project(clusters, plan.device);
    anneal(p_, {0.003, 3e-5, end}, plan);
    swap_devices(plan);
    if (plan.value < best_.value) best_ = std::move(plan);
  }

  // Exchanges all units of two devices: nearly equal devices need it, and moves
  // of single units hardly find it.
  void swap_devices(LoadPlan& plan) {
    const int32_t devices = p_.num_devices();
    LoadPlan other;
    for (int32_t a = 0; a < devices; ++a) {
      for (int32_t b = a + 1; b < devices && stream_.take(1) > 0; ++b) {
        if (stream_.spent() >= 1) return;
        other.device = plan.device;
        for (int32_t& d : other.device) d = d == a ? b : d == b ? a : d;
        other.value = load_value(p_, other.device);
        if (other.value < plan.value) std::swap(plan, other);
      }
    }
  }

  const LoadProblem& p_;
  LoadPlan best_;
  SearchStream& stream_;
  int number_;
};

// A plan to begin with: a candidate or the expert's stages.
struct LoadStart {
  LoadPlan plan;
  std::string name;
  int tried = 0;  // first tries of this stream
};

// A series of searches: all streams make starts, explore, then refine the best
// plan found.
class LoadSearch {
 public:
  LoadSearch(const PlanProblem& problem, const LoadProblem& p,
             const Budget& budget, uint64_t seed)
      : problem_(problem),
        p_(p),
        units_(problem),
        tries_(units_, false),
        series_(budget,
                kFirstLoadMoves + kFirstLoadMovesPerUnit * p.num_units(), seed),
        starts_(budget.num_streams() + 1) {
    LoadPlan spread{spread_out(p)};
    spread.value = load_value(p, spread.device);
    starts_[0] = {std::move(spread), "every op where it ends first"};
    for (const PlanCandidate& c : problem.candidates) {
      take_better(starts_[0], c.plan.device, c.name);
    }
  }

  Found run() {
    Found found;
    while (series_.next(best_.value)) {
      series_.run(
          [&](SearchStream& s) { make_starts(s, starts_[s.number() + 1]); });
      const LoadStart& start = *std::ranges::min_element(
          starts_, {}, [](const LoadStart& s) { return s.plan.value; });
      if (best_.device.empty() || start.plan.value < best_.value) {
        best_ = start.plan;
        found.start = {start.name, start.plan.value};
      }
      search();
    }
    found.moves = series_.moves();
    if (std::isinf(best_.value)) return found;
    found.value = load_value(p_, best_.device);
    for (const int32_t g : problem_.group) {
      found.plan.device.push_back(best_.device[g]);
    }
    return found;
  }

 private:
  void search() {
    std::vector<StreamSearch> searches;
    for (SearchStream& s : series_.streams()) {
      searches.emplace_back(p_, best_, s, series_.number() + s.number());
    }
    const auto take_best = [&] {
      for (const StreamSearch& s : searches) {
        if (s.best().value < best_.value) best_ = s.best();
      }
    };
    series_.run([&](SearchStream& s) { searches[s.number()].explore(); });
    take_best();
    series_.run([&](SearchStream& s) { searches[s.number()].refine(best_); });
    take_best();
  }

  // Makes the stream's next tries.
  void make_starts(SearchStream& stream, LoadStart& best) const {
    const int64_t moves = 1 + p_.num_units() / kUnitsPerMoveOfStart;
    const int streams = std::ssize(starts_) - 1;
    for (;; ++best.tried) {
      const int k = stream.number() + best.tried * streams;
      if (k >= tries_.count()) break;
      // The first few are made in any case: searches of many units need them.
      // Under limits, one that keeps them is worth more time.
      const double end = (std::isfinite(best.plan.value) ? 1 : 2) * kTriesEnd;
      if (best.tried >= kSureTries && stream.spent() >= end) break;
      stream.take(moves);
      take_better(best, tries_.devices(tries_.cut(k)), tries_.name(k));
    }
  }

  void take_better(LoadStart& best, const std::vector<int32_t>& device,
                   const std::string& name) const {
    LoadPlan other;
    other.device.assign(p_.bytes.size(), 0);
    for (size_t i = 0; i < problem_.group.size(); ++i) {
      other.device[problem_.group[i]] = device[i];
    }
    other.value = load_value(p_, other.device);
    if (!(other.value < best.plan.value)) return;
    best.plan = std::move(other);
    best.name = name;
  }

  const PlanProblem& problem_;
  const LoadProblem& p_;
  const StepUnits units_;
  const FirstTries tries_;
  SearchSeries series_;
  std::vector<LoadStart> starts_;  // the first: of candidates; then per stream
  LoadPlan best_;
};

}  // namespace

Found search_loads(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed) {
  const LoadProblem p(problem);
  if (p.num_units() == 0) return {};
  if (std::ranges::count(p.allowed, DeviceSet{0}) > 0) return {};
  return LoadSearch(problem, p, budget, seed).run();
}

}  // namespace berth
