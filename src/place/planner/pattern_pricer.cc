#include "place/planner/pattern_pricer.h"

#include <algorithm>
#include <numeric>

#include "base/infinity.h"

namespace berth {

namespace {

constexpr int kOrders = 48;      // orders to try
constexpr int32_t kWidth = 16;   // open nets, at most
constexpr int kRoughGrid = 100;  // at first
constexpr int kLeastRoughGrid = 1600;
constexpr int64_t kFewStates = 1000;  // too few for a rough grid
constexpr int kFineGrid = 1000;       // at first; then four times finer each
constexpr int kFinestGrid = 64'000;
constexpr int64_t kMuchWork = 20'000'000;  // too much to do fourfold
constexpr double kSure = 1 + 2e-5;         // margin of a proof, for its checker

// The greatest value below which `worth` exceeds what all devices hold, by
// their staircases; at most `most`.
ProvedWorth proved_by(const std::vector<std::vector<Worth>>& stairs,
                      const std::vector<PackingKind>& kinds, double worth,
                      double most) {
  ProvedWorth proved;
  std::vector<size_t> next(stairs.size(), 0);
  std::vector<double> prices(stairs.size(), 0);
  while (true) {
    double value = most;
    for (size_t k = 0; k < stairs.size(); ++k) {
      if (next[k] < stairs[k].size()) {
        value = std::min(value, stairs[k][next[k]].load);
      }
    }
    // All steps below this value are taken.
    double devices = 0;
    for (size_t k = 0; k < kinds.size(); ++k) {
      devices += kinds[k].count * prices[k];
    }
    if (!(worth > devices * kSure)) return proved;
    proved = {value, prices};
    if (value >= most) return proved;
    for (size_t k = 0; k < stairs.size(); ++k) {
      for (size_t& i = next[k];
           i < stairs[k].size() && stairs[k][i].load <= value; ++i) {
        prices[k] = stairs[k][i].worth;
      }
    }
  }
}

}  // namespace

PatternPricer::PatternPricer(const PackingProblem& problem,
                             std::function<bool()> stop)
    : p_(problem),
      stop_(std::move(stop)),
      order_(frontier_order(problem, kOrders)),
      rough_grid_(kRoughGrid),
      found_(problem.num_kinds()) {}

bool PatternPricer::aim_at(double target, int64_t most_states) {
  target_ = target;
  graphs_.clear();
  std::vector<double> size(static_cast<size_t>(p_.num_units()));
  for (size_t k = 0; k < p_.num_kinds(); ++k) {
    for (size_t u = 0; u < size.size(); ++u) {
      size[u] = p_.size_on(static_cast<int32_t>(u), k);
    }
    auto graph = std::make_unique<FrontierGraph>(p_, k, order_, size, true,
                                                 target, kWidth, most_states);
    work_ += graph->num_states() * 4;
    // The checker of a proof uses all nets.
    if (!graph->complete() || !graph->whole()) return false;
    graphs_.push_back(std::move(graph));
    if (searches_.size() == k) {
      searches_.push_back(std::make_unique<FrontierSearch>(*graphs_.back()));
    } else {
      searches_[k]->reset(*graphs_.back());
    }
  }
  return true;
}

void PatternPricer::keep(size_t kind) {
  for (FoundSet& set : searches_[kind]->found()) {
    found_[kind].push_back(std::move(set));
  }
}

// Sets worth clearly more than `least` are found with less work; if there are
// any, no others matter.
bool PatternPricer::find_on(size_t kind, std::span<const double> worth,
                            double least, double* price) {
  FrontierQuery q;
  q.worth = worth;
  q.most = target_;
  q.grid =
      graphs_[kind]->num_states() < kFewStates ? kFineGrid / 4 : kRoughGrid;
  q.real = true;
  q.stop = stop_;
  for (const double margin : {1.02, 1.0}) {
    if (margin > 1 && least <= 0) continue;
    q.least = std::max(least, 0.0) * margin;
    const std::vector<Worth> stairs = searches_[kind]->run(q);
    if (stairs.empty()) return false;
    *price = stairs.back().worth;
    if (stairs.size() > 1) break;
  }
  // The known sets may include what a rough search missed.
  for (const FoundSet& set : found_[kind]) {
    if (set.load > target_) continue;
    double sum = 0;
    for (const int32_t u : set.units) sum += worth[static_cast<size_t>(u)];
    *price = std::max(*price, sum);
  }
  keep(kind);
  return true;
}

PricedWorth PatternPricer::find(std::span<const double> worth,
                                std::span<const double> least) {
  PricedWorth priced = {0, std::vector<double>(p_.num_kinds(), 0)};
  if (graphs_.size() < p_.num_kinds()) return priced;  // too large
  double devices = 0;
  for (size_t k = 0; k < p_.num_kinds(); ++k) {
    double price = 0;
    if (!find_on(k, worth, least[k], &price)) {
      return {0, std::vector<double>(p_.num_kinds(), 0)};  // stopped
    }
    priced.prices[k] = price;
    devices += p_.kinds[k].count * price;
  }
  const double all = std::accumulate(worth.begin(), worth.end(), 0.0);
  priced.ratio = devices > 0 ? all / devices : all > 0 ? kInfinity : 0;
  return priced;
}

// Returns whether a finer grid is worth trying.
bool PatternPricer::prove_on(int grid, std::span<const double> worth,
                             const PricedWorth& rough, ProvedWorth& proved) {
  std::vector<std::vector<Worth>> stairs;
  bool missed = false;  // by the rough search
  for (size_t k = 0; k < p_.num_kinds(); ++k) {
    FrontierQuery q;
    q.worth = worth;
    q.most = target_;
    q.grid = grid;
    // If worth proves less than the target, prices are that much lower.
    q.least = rough.prices[k] * std::min(rough.ratio * 0.999, 1.0);
    q.stop = stop_;
    stairs.push_back(searches_[k]->run(q));
    if (stairs.back().empty()) return false;
    for (FoundSet& set : searches_[k]->found()) {
      set.load = load_of(p_, k, set.units);
      if (set.load > target_) continue;  // by rounding only
      missed |= set.worth > rough.prices[k] * (1 + 1e-5);
      found_[k].push_back(std::move(set));
    }
  }
  const double all = std::accumulate(worth.begin(), worth.end(), 0.0);
  const ProvedWorth now = proved_by(stairs, p_.kinds, all, target_);
  if (now.value > proved.value) proved = now;
  if (missed) rough_grid_ = std::min(2 * rough_grid_, kLeastRoughGrid);
  return !missed && proved.value < target_;
}

ProvedWorth PatternPricer::prove(std::span<const double> worth,
                                 const PricedWorth& rough) {
  ProvedWorth proved;
  if (graphs_.size() < p_.num_kinds()) return proved;  // too large
  for (int grid = kFineGrid; grid <= kFinestGrid; grid *= 4) {
    const int64_t before = work();
    if (!prove_on(grid, worth, rough, proved)) break;
    if (grid >= 16 * kFineGrid && work() - before > kMuchWork) break;
  }
  return proved;
}

int64_t PatternPricer::work() const {
  int64_t work = work_;
  for (const auto& s : searches_) work += s->work();
  return work;
}

}  // namespace berth
