// The search for throughput plans: splits of linear orders, then annealing of
// many coarse problems, then of the problem itself.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "base/infinity.h"
#include "place/planner/chain_dp.h"
#include "place/planner/coarsen.h"
#include "place/planner/first_tries.h"
#include "place/planner/linear_orders.h"
#include "place/planner/load_state.h"
#include "place/planner/load_stream.h"
#include "place/planner/models.h"

namespace berth {

namespace {

constexpr int64_t kBlock = 128;  // moves between budget checks
constexpr size_t kSimilar = 12;  // units of adjacent work that count as similar

// -ln(u) for u uniform in (0, 1), at equal steps.
const std::array<double, 1024>& exponentials() {
  static const std::array<double, 1024> table = [] {
    std::array<double, 1024> t{};
    for (size_t i = 0; i < t.size(); ++i) {
      t[i] = -std::log((static_cast<double>(i) + 0.5) / 1024);
    }
    return t;
  }();
  return table;
}

// With up to this many units a problem is small: variety finds its best plan,
// not refinement.
constexpr int32_t kFewUnits = 24;

struct Cooling {
  double hot = 0.03;     // temperatures, as shares of the load
  double cold = 0.0005;  // at the end
  double end = 1;        // ends at this share of the stream's budget
};

// Anneals a state, which stays where it ended. `best` becomes the best plan
// visited that keeps all limits, if that is better.
class Annealer {
 public:
  Annealer(LoadState& state, LoadStream& stream, LoadPlan& best)
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
    const auto work = [&](int32_t u) {
      return p_.work[static_cast<size_t>(u) * p_.num_classes];
    };
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
    const uint64_t bits = stream_.random.next();
    const double x = exponentials()[bits & 1023];
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
  LoadStream& stream_;
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
constexpr double kCutsEnd = 0.05, kCoarseEnd = 0.4;
constexpr double kFewCoarseEnd = 0.9;  // for few units
constexpr double kTriesEnd = 0.25;
constexpr int kSureTries = 2;  // per stream
constexpr double kLoadClimbShare = 0.07;
constexpr int kMostLoadClimbs = 20000, kLoadClimbsInMoves = 40;
constexpr int kLoadRounds = 40;
// Larger problems are first shrunk to about this many units.
constexpr int32_t kManyUnits = 3000;

// Devices of each class by what they have to do.
class LeastLoaded {
 public:
  explicit LeastLoaded(const LoadProblem& p)
      : p_(p), loads_(p.limit.size(), 0) {
    by_load_.resize(p.num_classes);
    for (int32_t d = 0; d < p.num_devices(); ++d) devices_of(d).insert({0, d});
  }

  // The device of those that a unit allows on which it would end first.
  int32_t for_unit(int32_t unit) const {
    Place best = {kInfinity, -1};
    for (const auto& devices : by_load_) {
      for (const auto& [load, d] : devices) {
        if (!p_.allowed[unit].has(d)) continue;
        best = std::min(best, Place(load + p_.work_on(unit, d), d));
        break;
      }
    }
    return best.second < 0 ? p_.allowed[unit].first() : best.second;
  }

  void add(int32_t unit, int32_t device) {
    devices_of(device).erase({loads_[device], device});
    loads_[device] += p_.work_on(unit, device);
    devices_of(device).insert({loads_[device], device});
  }

 private:
  using Place = std::pair<double, int32_t>;

  std::set<Place>& devices_of(int32_t device) {
    return by_load_[p_.device_class[device]];
  }

  const LoadProblem& p_;
  std::vector<double> loads_;
  std::vector<std::set<Place>> by_load_;  // per class
};

// Puts each unit on the device with the least work among those that it allows;
// ignores limits.
std::vector<int32_t> spread_out(const LoadProblem& p) {
  LeastLoaded least(p);
  std::vector<int32_t> device;
  for (int32_t u = 0; u < p.num_units(); ++u) {
    device.push_back(least.for_unit(u));
    least.add(u, device.back());
  }
  return device;
}

class StreamSearch {
 public:
  StreamSearch(const LoadProblem& p, const LoadPlan& start, LoadStream& stream,
               int number)
      : p_(p), best_(start), stream_(stream), number_(number) {}

  // The first half: each stream finds a good plan.
  void explore() {
    LoadPlan spread{spread_out(p_)};
    spread.value = load_value(p_, spread.device);
    if (best_.device.empty() || spread.value < best_.value) {
      best_ = std::move(spread);
    }
    p_.num_units() > kManyUnits ? explore_shrunk() : explore_all();
  }

  // The other half: continues from the best plan of all streams.
  void refine(const LoadPlan& start) {
    if (start.value < best_.value) best_ = start;
    const bool known = std::isfinite(best_.value);
    anneal(p_, {known ? 0.002 : 0.3, 2e-5, 1}, best_);
  }

  const LoadPlan& best() const { return best_; }

 private:
  void explore_all() {
    cut_orders(p_, kCutsEnd, 64, best_);
    const int rounds = num_rounds();
    const double rounds_end =
        p_.num_units() <= kFewUnits ? kFewCoarseEnd : kCoarseEnd;
    for (int r = 0; r < rounds; ++r) {
      const double share = static_cast<double>(r + 1) / rounds;
      const double end = kCutsEnd + (rounds_end - kCutsEnd) * share;
      if (stream_.enough(best_.value)) break;
      if (stream_.spent() < end) coarse_round(r, end);
    }
  }

  void explore_shrunk() {
    const Clusters clusters = shrink(p_, kManyUnits, stream_.random);
    const LoadProblem small = contract(p_, clusters.of_unit, clusters.count);
    StreamSearch search(small, {}, stream_, number_);
    search.best_.device = spread_out(small);
    search.explore_all();
    if (!(search.best().value < best_.value)) return;
    best_ = {project(clusters, search.best().device), search.best().value};
  }

  void cut_orders(const LoadProblem& p, double end, int count, LoadPlan& best) {
    ChainCutter cutter(p);
    const LinearOrders orders(p);
    for (int k = 0; k < count && stream_.spent() < end; ++k) {
      const auto kind = static_cast<OrderKind>(
          (k + number_) % static_cast<int>(OrderKind::kCount));
      LoadPlan plan;
      plan.device = cutter.cut(orders.make(kind, stream_.random), best.value,
                               stream_, end);
      if (plan.device.empty()) continue;
      plan.value = load_value(p, plan.device);
      if (plan.value < best.value) best = std::move(plan);
    }
  }

  void anneal(const LoadProblem& p, const Cooling& cooling, LoadPlan& plan) {
    const double highest = std::ranges::max(machine_loads(p, plan.device));
    LoadState state(p, highest > 0 ? highest : 1);
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
    const double cap =
        few ? 0 : kCaps[static_cast<size_t>(round + number_) % kCaps.size()];
    const Clusters clusters = cluster_units(p_, cap, {}, stream_.random);
    const LoadProblem coarse = contract(p_, clusters.of_unit, clusters.count);
    LoadPlan plan;
    cut_orders(coarse, begin + 0.1 * (end - begin), 16, plan);
    if (plan.device.empty()) plan.device = spread_out(coarse);
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
  LoadStream& stream_;
  int number_;
};

// The best of the problem's candidates and the expert's first tries.
struct LoadStart {
  LoadPlan plan;
  std::string name;
  StageCut cut;  // of stages

  // Returns whether it is better.
  bool offer(const PlanProblem& problem, const LoadProblem& p,
             const std::vector<int32_t>& device, const std::string& of) {
    LoadPlan other;
    other.device.assign(p.bytes.size(), 0);
    for (size_t i = 0; i < problem.group.size(); ++i) {
      other.device[problem.group[i]] = device[i];
    }
    other.value = load_value(p, other.device);
    if (!(other.value < plan.value)) return false;
    plan = std::move(other);
    name = of;
    return true;
  }
};

LoadStart best_start(const PlanProblem& problem, const LoadProblem& p,
                     const Budget& budget, uint64_t seed) {
  LoadStart best;
  for (const PlanCandidate& c : problem.candidates) {
    best.offer(problem, p, c.plan.device, c.name);
  }
  const StepUnits units(problem);
  const FirstTries tries(units, false);
  // Moves the borders of the best stages while that makes them better: to where
  // less is sent.
  const auto climb = [&](LoadStart& start, int stream) {
    StreamRandom random(~seed, stream);
    const double end = budget.spent(0) + kLoadClimbShare;
    const std::string name = start.name + ", borders moved";
    for (int k = 0; !start.cut.on.empty() && k < kMostLoadClimbs; ++k) {
      if (budget.counts_moves() && k == kLoadClimbsInMoves) return;
      if (budget.spent(0) >= end) return;
      StageCut other = start.cut;
      tries.vary(other, random);
      if (start.offer(problem, p, tries.devices(other), name)) {
        start.cut = std::move(other);
      }
    }
  };
  std::vector<LoadStart> starts(budget.num_streams());
  run_streams(budget.num_streams(), budget.threads(), [&](int stream) {
    const int step = budget.num_streams();
    for (int k = stream; k < tries.count(); k += step) {
      // The first few are made in any case: searches of many units need them.
      const bool may_end = !budget.counts_moves() && k >= kSureTries * step;
      LoadStart& start = starts[stream];
      // Under limits, one that keeps them is worth more time.
      const double end = (std::isfinite(start.plan.value) ? 1 : 2) * kTriesEnd;
      if (may_end && budget.spent(0) >= end) break;
      if (start.offer(problem, p, tries.devices(k), tries.name(k))) {
        start.cut = tries.cut(k);
      }
    }
    climb(starts[stream], stream);
  });
  for (LoadStart& s : starts) {
    if (s.plan.value < best.plan.value) best = std::move(s);
  }
  return best;
}

// All streams explore, then refine the best plan found.
class LoadSearch {
 public:
  LoadSearch(const LoadProblem& p, const LoadPlan& start, const Budget& budget,
             uint64_t seed)
      : budget_(budget), best_(start) {
    const int count = budget.num_streams();
    streams_.reserve(static_cast<size_t>(count));
    for (int k = 0; k < count; ++k) {
      streams_.emplace_back(budget, seed, k);
      searches_.emplace_back(p, start, streams_.back(), k);
    }
  }

  LoadPlan run() {
    on_streams([](StreamSearch& s, const LoadPlan&) { s.explore(); });
    on_streams([](StreamSearch& s, const LoadPlan& best) { s.refine(best); });
    return best_;
  }

  int64_t moves() const {
    int64_t moves = 0;
    for (const LoadStream& s : streams_) moves += s.moves();
    return moves;
  }

 private:
  template <class Fn>
  void on_streams(const Fn& fn) {
    run_streams(budget_.num_streams(), budget_.threads(),
                [&](int k) { fn(searches_[k], best_); });
    for (const StreamSearch& s : searches_) {
      if (s.best().value < best_.value) best_ = s.best();
    }
  }

  const Budget& budget_;
  LoadPlan best_;
  std::vector<LoadStream> streams_;
  std::vector<StreamSearch> searches_;
};

}  // namespace

Found search_loads(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed) {
  const LoadProblem p(problem);
  Found found;
  if (p.num_units() == 0) return found;
  if (std::ranges::count(p.allowed, DeviceSet{0}) > 0) return found;
  const LoadStart start = best_start(problem, p, budget, seed);
  LoadSearch search(p, start.plan, budget, seed);
  const LoadPlan best = search.run();
  found.start = {start.name, start.plan.value};
  found.moves = search.moves();
  if (std::isinf(best.value)) return found;
  found.value = load_value(p, best.device);
  for (const int32_t g : problem.group) {
    found.plan.device.push_back(best.device[g]);
  }
  return found;
}

}  // namespace berth
