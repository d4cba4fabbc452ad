#include "place/planner/sum_proof.h"

#include <algorithm>
#include <cmath>

#include "base/infinity.h"
#include "place/planner/simplex.h"

namespace berth {

namespace {

constexpr int kMostCuts = 60;

// What units take of their cheapest kinds: the slope of the worth.
double worth_and_slope(std::span<const double> share,
                       std::span<const double> prices,
                       std::vector<double>& slope) {
  const size_t kinds = prices.size();
  slope.assign(kinds, 0);
  double sum = 0;
  for (size_t at = 0; at < share.size(); at += kinds) {
    size_t best = kinds;
    double least = kInfinity;
    for (size_t k = 0; k < kinds; ++k) {
      if (std::isinf(share[at + k])) continue;
      const double w = share[at + k] * prices[k];
      if (w >= least) continue;
      least = w;
      best = k;
    }
    if (best == kinds) return kInfinity;
    slope[best] += share[at + best];
    sum += least;
  }
  return sum;
}

}  // namespace

double worth_of(std::span<const double> share, std::span<const double> prices) {
  double least = kInfinity;
  for (size_t k = 0; k < prices.size(); ++k) {
    if (std::isinf(share[k])) continue;
    least = std::min(least, share[k] * prices[k]);
  }
  return least;
}

// The worth is concave in the prices: cutting planes.
SumProof prove_by_sum(std::span<const double> share,
                      std::span<const double> counts) {
  const size_t kinds = counts.size();
  double devices = 0;
  for (const double c : counts) devices += c;
  SumProof best;
  std::vector<double> prices(kinds, 1 / devices), slope;
  best.worth = worth_and_slope(share, prices, slope);
  best.prices = prices;
  if (kinds == 1 || std::isinf(best.worth)) return best;

  // Variables: a price per kind, and the worth.
  std::vector<double> objective(kinds + 1, 0), lower(kinds + 1, 0), upper;
  double most = 0;
  for (size_t k = 0; k < kinds; ++k) {
    upper.push_back(1 / counts[k]);
  }
  for (size_t at = 0; at < share.size(); at += kinds) {
    most += worth_of(share.subspan(at, kinds), upper);
  }
  if (!(most > 0)) return best;
  objective.back() = 1;
  upper.push_back(most);
  RowLp lp(objective, lower, upper);
  std::vector<std::pair<int32_t, double>> row;
  for (size_t k = 0; k < kinds; ++k) {
    row.push_back({static_cast<int32_t>(k), counts[k]});
  }
  lp.add_row(row, 1);
  for (int cut = 0; cut < kMostCuts; ++cut) {
    row.clear();
    for (size_t k = 0; k < kinds; ++k) {
      row.push_back({static_cast<int32_t>(k), -slope[k]});
    }
    row.push_back({static_cast<int32_t>(kinds), 1});
    lp.add_row(row, 0);
    if (!lp.solve(1000)) break;
    const std::vector<double> x = lp.x();
    double sum = 0;
    for (size_t k = 0; k < kinds; ++k) {
      prices[k] = std::max(x[k], 0.0);
      sum += prices[k] * counts[k];
    }
    if (!(sum > 0)) break;
    for (double& p : prices) p /= sum;
    const double worth = worth_and_slope(share, prices, slope);
    if (worth > best.worth) {
      best.worth = worth;
      best.prices = prices;
    }
    if (lp.value() <= best.worth * (1 + 1e-7)) break;
  }
  return best;
}

}  // namespace berth
