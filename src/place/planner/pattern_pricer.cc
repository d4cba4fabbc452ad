#include "place/planner/pattern_pricer.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace berth {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kOrders = 48;     // that are tried
constexpr int32_t kWidth = 16;  // open nets, at most
constexpr int kRoughGrid = 200;
constexpr int kFineGrids[] = {4000, 16000};
constexpr double kSure = 1 + 1e-9;  // margin of a proof over rounding

// The greatest value below which `worth` is more than all devices hold, by
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

PatternPricer::PatternPricer(const PackingProblem& problem)
    : p_(problem),
      order_(frontier_order(problem, kOrders)),
      found_(problem.num_kinds()) {}

bool PatternPricer::aim_at(double target, int64_t most_states) {
  work_ = work();
  target_ = target;
  searches_.clear();
  graphs_.clear();
  std::vector<double> size(static_cast<size_t>(p_.num_units()));
  for (size_t k = 0; k < p_.num_kinds(); ++k) {
    for (size_t u = 0; u < size.size(); ++u) {
      size[u] = p_.size_on(static_cast<int32_t>(u), k);
    }
    std::unique_ptr<FrontierGraph> graph;
    int32_t width = kWidth;
    do {
      graph = std::make_unique<FrontierGraph>(p_, k, order_, size, true, target,
                                              width, most_states);
      work_ += graph->num_states() * 4;
      width -= 4;
    } while (!graph->complete() && width > 0);
    if (!graph->complete()) return false;
    graphs_.push_back(std::move(graph));
    searches_.push_back(std::make_unique<FrontierSearch>(*graphs_.back()));
  }
  return true;
}

PricedWorth PatternPricer::find(std::span<const double> worth,
                                std::span<const double> least) {
  PricedWorth priced;
  double devices = 0;
  for (size_t k = 0; k < p_.num_kinds(); ++k) {
    FrontierQuery q;
    q.worth = worth;
    q.most = target_;
    q.grid = kRoughGrid;
    q.least = std::max(least[k], 0.0);
    q.real = true;
    const std::vector<Worth> stairs = searches_[k]->run(q);
    double price = q.least;
    std::vector<int32_t> set;
    if (!stairs.empty()) {
      price = stairs.back().worth;
      set = searches_[k]->best_set();
    }
    if (!set.empty()) {
      found_[k].push_back({std::move(set), stairs.back().load});
    }
    priced.prices.push_back(price);
    devices += p_.kinds[k].count * price;
  }
  const double all = std::accumulate(worth.begin(), worth.end(), 0.0);
  priced.ratio = devices > 0 ? all / devices : all > 0 ? kInfinity : 0;
  return priced;
}

// Returns whether a finer grid would be of no use.
bool PatternPricer::prove_on(int grid, std::span<const double> worth,
                             const PricedWorth& rough, ProvedWorth& proved) {
  std::vector<std::vector<Worth>> stairs;
  const double all = std::accumulate(worth.begin(), worth.end(), 0.0);
  bool all_rough = true;
  for (size_t k = 0; k < p_.num_kinds(); ++k) {
    FrontierQuery q;
    q.worth = worth;
    q.most = target_;
    q.grid = grid;
    // Where worth proves less than the target, prices are that much lower.
    q.least = rough.prices[k] * std::min(rough.ratio * 0.999, 1.0);
    stairs.push_back(searches_[k]->run(q));
    if (stairs.back().empty()) return true;
    all_rough &= stairs.back().back().worth <= rough.prices[k] * (1 + 1e-4);
  }
  const ProvedWorth now = proved_by(stairs, p_.kinds, all, target_);
  if (now.value > proved.value) proved = now;
  return all_rough || proved.value >= target_;
}

ProvedWorth PatternPricer::prove(std::span<const double> worth,
                                 const PricedWorth& rough) {
  ProvedWorth proved;
  for (const int grid : kFineGrids) {
    if (prove_on(grid, worth, rough, proved)) break;
  }
  return proved;
}

int64_t PatternPricer::work() const {
  int64_t work = work_;
  for (const auto& s : searches_) work += s->work();
  return work;
}

}  // namespace berth
