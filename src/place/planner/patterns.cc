#include "place/planner/patterns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "place/planner/pattern_pricer.h"
#include "place/planner/simplex.h"

namespace berth {

namespace {

constexpr double kProved = 1 + 1e-6;  // ratio that is worth a proof
constexpr double kFarthest = 0.3;     // first reach, as a share of worth
constexpr int64_t kWorkPerMove = 64;

double sum_of(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

class Patterns {
 public:
  Patterns(const PackingProblem& problem, std::vector<double> worth,
           const Budget& budget, const PatternOptions& options)
      : p_(problem),
        budget_(budget),
        o_(options),
        kinds_(problem.num_kinds()),
        pricer_(problem),
        center_(std::move(worth)) {
    for (double& w : center_) w = std::isfinite(w) ? w : 0;
    const double all = sum_of(center_);
    // Units that take no time get worth as well, in time.
    const double little = 0.02 / static_cast<double>(center_.size());
    for (double& w : center_) {
      w = all > 0 ? w / all : little;
      scale_.push_back(w + little);
    }
  }

  PatternProof prove() {
    double step = 0.03;
    double low = o_.lower;
    num_groups_ = std::min<size_t>(16, center_.size());
    while (!over() && step > 2e-4 && low < o_.upper) {
      if (!pricer_.aim_at(std::min(low * (1 + step), o_.upper * kProved),
                          o_.most_states)) {
        break;
      }
      reach_ = kFarthest;
      const bool reached = improve();
      keep_proof();
      low = std::max(low, proof_.value);
      step *= reached ? 1.5 : 0.5;
    }
    proof_.order = pricer_.order();
    return std::move(proof_);
  }

 private:
  bool over() const {
    if (!budget_.counts_moves()) return budget_.spent(0) >= o_.until;
    return budget_.spent((pricer_.work() + work_) / kWorkPerMove) >= o_.until;
  }

  void keep_proof() {
    const ProvedWorth now = pricer_.prove(center_, best_);
    if (now.value <= std::max(proof_.value, o_.lower)) return;
    proof_.value = now.value;
    proof_.worth = center_;
    proof_.prices = now.prices;
  }

  // Moves worth until it seems to prove the target. Returns whether it does.
  bool improve() {
    best_ = pricer_.find(center_, std::vector<double>(kinds_, 0));
    while (best_.ratio < kProved && !over()) {
      const double before = best_.ratio;
      double hoped = 0;
      improve_within_reach(&hoped);
      if (best_.ratio - before >= 0.002) continue;
      if (num_groups_ < center_.size()) {
        num_groups_ = std::min(num_groups_ * 2, center_.size());
      } else if (hoped < 1 || reach_ < 0.003) {
        break;
      } else {
        reach_ /= 2;
      }
    }
    return best_.ratio >= kProved;
  }

  // Units of a group are next to each other and together have about an equal
  // share of all worth; at last every unit is a group. Returns how many.
  size_t make_groups() {
    const size_t n = center_.size();
    group_.assign(n, 0);
    const double all = sum_of(scale_);
    const auto groups = static_cast<double>(num_groups_);
    double before = 0, last = -1;
    int32_t count = 0;
    for (size_t i = 0; i < n; ++i) {
      const auto u = static_cast<size_t>(pricer_.order()[i]);
      const double at = num_groups_ >= n ? static_cast<double>(i)
                                         : std::floor(before / all * groups);
      before += scale_[u];
      if (at != last) ++count;
      last = at;
      group_[u] = count - 1;
    }
    return static_cast<size_t>(count);
  }

  // Variables: the change of each group, then the price of each kind.
  RowLp make_lp(size_t groups) {
    std::vector<double> objective(groups + kinds_, 0);
    std::vector<double> lower(groups + kinds_, -reach_);
    std::vector<double> upper(groups + kinds_, reach_);
    for (size_t u = 0; u < scale_.size(); ++u) {
      objective[static_cast<size_t>(group_[u])] += scale_[u];
    }
    std::vector<std::pair<int32_t, double>> row;
    for (size_t k = 0; k < kinds_; ++k) {
      lower[groups + k] = 0;
      upper[groups + k] = 1.0 / p_.kinds[k].count;
      row.push_back({static_cast<int32_t>(groups + k), p_.kinds[k].count});
    }
    RowLp lp(objective, lower, upper);
    lp.add_row(row, 1);
    return lp;
  }

  // Adds rows of patterns from number `next` on: worth <= price.
  bool add_rows(RowLp& lp, size_t groups, std::vector<size_t>& next) {
    bool added = false;
    std::vector<double> change;
    std::vector<std::pair<int32_t, double>> row;
    for (size_t k = 0; k < kinds_; ++k) {
      const std::vector<Pattern>& found = pricer_.patterns()[k];
      for (size_t& i = next[k]; i < found.size(); ++i) {
        if (found[i].load > pricer_.target()) continue;
        change.assign(groups, 0);
        double at_center = 0;
        for (const int32_t u : found[i].units) {
          change[static_cast<size_t>(group_[u])] += scale_[u];
          at_center += center_[u];
        }
        row.assign(1, {static_cast<int32_t>(groups + k), -1.0});
        for (size_t g = 0; g < groups; ++g) {
          if (change[g] > 0)
            row.push_back({static_cast<int32_t>(g), change[g]});
        }
        lp.add_row(row, -at_center);
        added = true;
      }
    }
    return added;
  }

  // Looks for better worth about the center, until the LP and the search agree
  // or enough is won; *hoped: the ratio that is not excluded yet.
  void improve_within_reach(double* hoped) {
    const size_t groups = make_groups();
    // Prices of all devices add up to 1, so that sums of worth are ratios.
    const double by = best_.ratio / sum_of(center_);
    for (double& w : center_) w *= by;
    for (double& price : best_.prices) price *= by;
    const double at_center = sum_of(center_);
    std::vector<double> best_worth;
    RowLp lp = make_lp(groups);
    std::vector<size_t> next(kinds_, 0);
    add_rows(lp, groups, next);
    for (int step = 0; step < 60 && !over(); ++step) {
      const int64_t pivots = lp.pivots();
      const bool solved = lp.solve(5000);
      work_ += (lp.pivots() - pivots) *
               static_cast<int64_t>(lp.num_rows() * groups / 16 + 1);
      if (!solved) break;
      *hoped = lp.value() + at_center;
      if (*hoped < best_.ratio + 1e-5) break;
      const std::vector<double> x = lp.x();
      std::vector<double> worth = center_;
      for (size_t u = 0; u < worth.size(); ++u) {
        worth[u] += x[static_cast<size_t>(group_[u])] * scale_[u];
      }
      const std::vector<double> prices(
          x.begin() + static_cast<std::ptrdiff_t>(groups), x.end());
      const PricedWorth now = pricer_.find(worth, prices);
      const double won = now.ratio - best_.ratio;
      if (won > 0) {
        const double left = *hoped - best_.ratio;
        best_ = now;
        best_worth = std::move(worth);
        if (won > 0.3 * left || now.ratio >= kProved) break;
      }
      if (step > 12 && !best_worth.empty()) break;
      if (!add_rows(lp, groups, next)) break;
    }
    if (!best_worth.empty()) center_ = std::move(best_worth);
  }

  const PackingProblem& p_;
  const Budget& budget_;
  const PatternOptions& o_;
  const size_t kinds_;
  PatternPricer pricer_;
  std::vector<double> center_;  // worth per unit
  std::vector<double> scale_;   // what changes of worth are in proportion to
  PricedWorth best_;            // of the center
  std::vector<int32_t> group_;  // per unit
  size_t num_groups_ = 0;       // wanted
  double reach_ = kFarthest;
  PatternProof proof_;
  int64_t work_ = 0;  // of the LPs
};

}  // namespace

PatternProof prove_by_patterns(const PackingProblem& problem,
                               std::vector<double> worth, const Budget& budget,
                               const PatternOptions& options) {
  return Patterns(problem, std::move(worth), budget, options).prove();
}

}  // namespace berth
