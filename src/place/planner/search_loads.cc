// The search for throughput plans: splits of linear orders, then annealing of
// many coarse problems, then of the problem itself.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "place/planner/anneal_loads.h"
#include "place/planner/chain_dp.h"
#include "place/planner/coarsen.h"
#include "place/planner/first_tries.h"
#include "place/planner/linear_orders.h"
#include "place/planner/models.h"

namespace berth {

namespace {

// Shares of a stream's budget.
constexpr double kCutsEnd = 0.05, kCoarseEnd = 0.4;
constexpr double kFewCoarseEnd = 0.9;  // for few units
constexpr double kTriesEnd = 0.25;
constexpr int kSureTries = 2;  // per stream
constexpr int kLoadRounds = 40;
// Larger problems are first shrunk to about this many units.
constexpr int32_t kManyUnits = 3000;

// Devices of each class by what they have to do.
class LeastLoaded {
 public:
  explicit LeastLoaded(const LoadProblem& p)
      : p_(p), loads_(p.limit.size(), 0) {
    by_load_.resize(static_cast<size_t>(p.num_classes));
    for (int32_t d = 0; d < p.num_devices(); ++d) devices_of(d).insert({0, d});
  }

  // The device of those that a unit allows on which it would end first.
  int32_t for_unit(int32_t unit) const {
    Place best = {std::numeric_limits<double>::infinity(), -1};
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
    return by_load_[static_cast<size_t>(p_.device_class[device])];
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
    anneal_loads(state, cooling, stream_, plan);
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

  void offer(const PlanProblem& problem, const LoadProblem& p,
             const std::vector<int32_t>& device, const std::string& of) {
    LoadPlan other;
    other.device.assign(p.bytes.size(), 0);
    for (size_t i = 0; i < problem.group.size(); ++i) {
      other.device[problem.group[i]] = device[i];
    }
    other.value = load_value(p, other.device);
    if (!(other.value < plan.value)) return;
    plan = std::move(other);
    name = of;
  }
};

LoadStart best_start(const PlanProblem& problem, const LoadProblem& p,
                     const Budget& budget) {
  LoadStart best;
  for (const PlanCandidate& c : problem.candidates) {
    best.offer(problem, p, c.plan.device, c.name);
  }
  const StepUnits units(problem);
  const FirstTries tries(units, false);
  std::vector<LoadStart> starts(static_cast<size_t>(budget.num_streams()));
  run_streams(budget.num_streams(), budget.threads(), [&](int stream) {
    const int step = budget.num_streams();
    for (int k = stream; k < tries.count(); k += step) {
      // The first few are made in any case: searches of many units need them.
      const bool may_end = !budget.counts_moves() && k >= kSureTries * step;
      if (may_end && budget.spent(0) >= kTriesEnd) return;
      starts[static_cast<size_t>(stream)].offer(problem, p, tries.devices(k),
                                                tries.name(k));
    }
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
                [&](int k) { fn(searches_[static_cast<size_t>(k)], best_); });
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
  const LoadStart start = best_start(problem, p, budget);
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
