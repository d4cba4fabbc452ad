#include "place/planner/patterns.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/infinity.h"
#include "place/planner/frontier.h"
#include "place/planner/packing.h"
#include "place/planner/simplex.h"

namespace berth {

namespace {

constexpr int kOrders = 48;      // orders to try
constexpr int32_t kWidth = 16;   // open nets, at most
constexpr int kRoughGrid = 100;  // at first
constexpr int kLeastRoughGrid = 1600;
constexpr int64_t kMostStates = 400'000;  // per kind
constexpr int64_t kFewStates = 1000;      // too few for a rough grid
constexpr int kFineGrid = 1000;  // at first; then four times finer each
constexpr int kFinestGrid = 64'000;
constexpr int64_t kMuchWork = 20'000'000;  // too much to do fourfold

// The result of a worth: prices per kind, and the worth of all units over the
// price of all devices; a ratio over 1 says that units do not fit.
struct PricedWorth {
  double ratio = 0;
  std::vector<double> prices;
};

double sum_of(std::span<const double> v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

double worth_of(const FoundSet& set, std::span<const double> worth) {
  double sum = 0;
  for (const int32_t u : set.units) sum += worth[u];
  return sum;
}

// Holds the graphs of sets for a target; finds sets by a rough search and
// proves by a fine one.
class PatternPricer {
 public:
  // `stop` is called now and then; once it returns true, nothing more is found.
  PatternPricer(const PackingProblem& problem, std::function<bool()> stop)
      : p_(problem),
        stop_(std::move(stop)),
        order_(frontier_order(problem, kOrders)),
        rough_grid_(kRoughGrid),
        found_(problem.num_kinds()) {}

  const std::vector<int32_t>& order() const { return order_; }

  // Builds the graphs of all sets that load a device by `target` at most.
  // Returns false when these are too large.
  bool aim_at(double target) {
    target_ = target;
    graphs_.clear();
    std::vector<double> size(p_.num_units());
    for (size_t k = 0; k < p_.num_kinds(); ++k) {
      for (size_t u = 0; u < size.size(); ++u) {
        size[u] = p_.size_on(static_cast<int32_t>(u), k);
      }
      auto graph = std::make_unique<FrontierGraph>(p_, k, order_, size, target,
                                                   kWidth, kMostStates);
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
  double target() const { return target_; }

  // Finds the sets that are worth most, and more than `least` (per kind), and
  // adds them to the patterns. May find too little; if stopped: a ratio of 0.
  PricedWorth find(std::span<const double> worth,
                   std::span<const double> least) {
    const PricedWorth none = {0, std::vector<double>(p_.num_kinds(), 0)};
    if (graphs_.size() < p_.num_kinds()) return none;  // too large
    PricedWorth priced = none;
    for (size_t k = 0; k < p_.num_kinds(); ++k) {
      if (!find_on(k, worth, least[k], &priced.prices[k])) return none;
    }
    const double all = sum_of(worth);
    const double devices = price_of_all(p_.kinds, priced.prices);
    priced.ratio = devices > 0 ? all / devices : all > 0 ? kInfinity : 0;
    return priced;
  }
  const std::vector<std::vector<FoundSet>>& patterns() const { return found_; }

  // Returns the greatest value up to the target that the worth proves; 0: none.
  // `rough`: the result of find() for it.
  ProvedWorth prove(std::span<const double> worth, const PricedWorth& rough) {
    ProvedWorth proved;
    if (graphs_.size() < p_.num_kinds()) return proved;  // too large
    for (int grid = kFineGrid; grid <= kFinestGrid; grid *= 4) {
      const int64_t before = work();
      if (!prove_on(grid, worth, rough, proved)) break;
      if (grid >= 16 * kFineGrid && work() - before > kMuchWork) break;
    }
    return proved;
  }

  // The work done, in pieces of about equal size.
  int64_t work() const {
    int64_t work = work_;
    for (const auto& s : searches_) work += s->work();
    return work;
  }

 private:
  // Sets worth clearly more than `least` are found with less work; if there are
  // any, no others matter.
  bool find_on(size_t kind, std::span<const double> worth, double least,
               double* price) {
    const bool few = graphs_[kind]->num_states() < kFewStates;
    FrontierQuery q{.worth = worth,
                    .most = target_,
                    .grid = few ? kFineGrid / 4 : kRoughGrid,
                    .real = true,
                    .stop = stop_};
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
      if (set.load <= target_) *price = std::max(*price, worth_of(set, worth));
    }
    std::ranges::move(searches_[kind]->found(),
                      std::back_inserter(found_[kind]));
    return true;
  }

  // Returns whether a finer grid is worth trying.
  bool prove_on(int grid, std::span<const double> worth,
                const PricedWorth& rough, ProvedWorth& proved) {
    std::vector<std::vector<Worth>> stairs;
    bool missed = false;  // by the rough search
    for (size_t k = 0; k < p_.num_kinds(); ++k) {
      // If worth proves less than the target, prices are that much lower.
      const double least = rough.prices[k] * std::min(rough.ratio * 0.999, 1.0);
      stairs.push_back(searches_[k]->run({.worth = worth,
                                          .most = target_,
                                          .grid = grid,
                                          .least = least,
                                          .stop = stop_}));
      if (stairs.back().empty()) return false;
      for (FoundSet& set : searches_[k]->found()) {
        set.load = load_of(p_, k, set.units);
        if (set.load > target_) continue;  // by rounding only
        missed |= set.worth > rough.prices[k] * (1 + 1e-5);
        found_[k].push_back(std::move(set));
      }
    }
    const ProvedWorth now = proved_by(stairs, p_.kinds, sum_of(worth), target_);
    if (now.value > proved.value) proved = now;
    if (missed) rough_grid_ = std::min(2 * rough_grid_, kLeastRoughGrid);
    return !missed && proved.value < target_;
  }

  const PackingProblem& p_;
  const std::function<bool()> stop_;
  std::vector<int32_t> order_;
  double target_ = 0;
  int rough_grid_;
  std::vector<std::unique_ptr<FrontierGraph>> graphs_;  // per kind
  std::vector<std::unique_ptr<FrontierSearch>> searches_;
  std::vector<std::vector<FoundSet>> found_;  // per kind
  int64_t work_ = 0;                          // in addition to that of searches
};

constexpr double kProved = 1 + 1e-6;  // the least ratio that is worth a proof
constexpr double kFirstReach = 0.3;   // as a share of worth
constexpr double kLeastReach = 0.003;
constexpr double kMostReach = 30;
constexpr size_t kFirstGroups = 32;
constexpr int64_t kWorkPerMove = 64;

// The LP over worth near a center: worth_u = a center_u + z_g(u) scale_u, where
// z changes for groups of units together. Rows say that known sets are worth no
// more than the price of their kind; prices of all devices add up to 1, so that
// the objective, the worth of all units, is a ratio.
class WorthLp {
 public:
  WorthLp(const PackingProblem& p, std::vector<double> center,
          std::vector<int32_t> group, size_t groups,
          const std::vector<double>& scale)
      : p_(p),
        base_(std::move(center)),
        group_(std::move(group)),
        groups_(groups),
        scale_(scale),
        lp_(make()),
        from_change_(groups, 0) {}

  // Allows worth within `reach` of the one of the last move_here(), of the
  // center at first.
  void limit_to(double reach) {
    lp_.set_bounds(static_cast<int32_t>(groups_), from_all_ / 2, from_all_ * 2);
    for (size_t g = 0; g < groups_; ++g) {
      lp_.set_bounds(static_cast<int32_t>(g), from_change_[g] - reach,
                     from_change_[g] + reach);
    }
  }
  void move_here() {
    from_all_ = all_;
    from_change_ = change_;
  }

  void add_row(size_t kind, const std::vector<int32_t>& units) {
    std::vector<double> of_group(groups_, 0);
    double of_base = 0;
    for (const int32_t u : units) {
      of_group[group_[u]] += scale_[u];
      of_base += base_[u];
    }
    std::vector<std::pair<int32_t, double>> row = {
        {static_cast<int32_t>(groups_), of_base},
        {static_cast<int32_t>(groups_ + 1 + kind), -1.0}};
    for (size_t g = 0; g < groups_; ++g) {
      if (of_group[g] > 0)
        row.push_back({static_cast<int32_t>(g), of_group[g]});
    }
    lp_.add_row(row, 0);
  }

  // Returns whether it was solved; adds the work to *work.
  bool solve(int64_t* work) {
    lp_.drop_loose_rows(2 * groups_ + 200);
    const int64_t pivots = lp_.pivots();
    const bool solved = lp_.solve(5000);
    *work += (lp_.pivots() - pivots) *
             static_cast<int64_t>(lp_.num_rows() * groups_ / 16 + 1);
    if (!solved) return false;
    const std::vector<double> x = lp_.x();
    change_.assign(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(groups_));
    all_ = x[groups_];
    prices_.assign(x.begin() + static_cast<std::ptrdiff_t>(groups_) + 1,
                   x.end());
    worth_.resize(base_.size());
    for (size_t u = 0; u < worth_.size(); ++u) {
      worth_[u] = all_ * base_[u] + change_[group_[u]] * scale_[u];
    }
    return true;
  }
  double ratio() const { return lp_.value(); }
  const std::vector<double>& worth() const { return worth_; }
  const std::vector<double>& prices() const { return prices_; }

 private:
  RowLp make() const {
    const size_t kinds = p_.num_kinds();
    std::vector<double> objective(groups_ + 1 + kinds, 0);
    std::vector<double> lower(objective.size(), 0), upper(objective.size(), 0);
    for (size_t u = 0; u < base_.size(); ++u) {
      objective[group_[u]] += scale_[u];
      objective[groups_] += base_[u];
    }
    // Equal groups tie, and ties make the simplex cycle.
    for (size_t g = 0; g < groups_; ++g) {
      const double part = std::fmod(static_cast<double>(g) * 0.618034, 1.0);
      objective[g] *= 1 + 1e-6 * part;
    }
    std::vector<std::pair<int32_t, double>> row;
    for (size_t k = 0; k < kinds; ++k) {
      upper[groups_ + 1 + k] = 1.0 / p_.kinds[k].count;
      row.push_back({static_cast<int32_t>(groups_ + 1 + k), p_.kinds[k].count});
    }
    RowLp lp(objective, lower, upper);
    lp.add_row(row, 1);
    return lp;
  }

  const PackingProblem& p_;
  const std::vector<double> base_;
  const std::vector<int32_t> group_;
  const size_t groups_;
  const std::vector<double>& scale_;
  RowLp lp_;
  std::vector<double> change_, prices_, worth_, from_change_;
  double all_ = 1, from_all_ = 1;
};

class Patterns {
 public:
  Patterns(const PackingProblem& problem, std::vector<double> worth,
           const Budget& budget, const PatternOptions& options)
      : p_(problem),
        budget_(budget),
        o_(options),
        kinds_(problem.num_kinds()),
        pricer_(problem, [this] { return late(); }),
        center_(std::move(worth)) {
    for (double& w : center_) w = std::isfinite(w) ? w : 0;
    const double all = sum_of(center_);
    // Units that take no time also get some worth, as time.
    const double little = 0.02 / static_cast<double>(center_.size());
    for (double& w : center_) {
      w = all > 0 ? w / all : little;
      scale_.push_back(w + little);
    }
    sort_places();
  }

  // For each size of groups: between what is proved and targets that failed. A
  // failure shows roughly how far one gets, since ratios fall as targets rise.
  PatternProof prove() {
    double low = o_.lower, step = first_step();
    double failed = 0;  // with groups of this size; 0: nothing yet
    num_groups_ =
        std::clamp(center_.size() / 5, kFirstGroups, 4 * kFirstGroups);
    num_groups_ = std::min(num_groups_, center_.size());
    int failures = 0;
    double restarted = low;  // at this value
    while (!over() && low < o_.upper) {
      double target = failures == 0 ? low * (1 + step) : (low + failed) / 2;
      if (failures == 1) {
        target =
            std::min(failed * best_.ratio * 0.999, 0.3 * low + 0.7 * failed);
        target = std::max(target, 0.8 * low + 0.2 * failed);
      }
      target = std::min(target, o_.upper * kProved);
      if (!pricer_.aim_at(target)) break;
      if (improve()) keep_proof();
      low = std::max(low, proof_.value);
      const bool proved = low >= target * (1 - 1e-9);
      if (proved && failures == 0) {
        step = std::min(std::max(best_.ratio - 1, step * 1.5), 0.05);
        continue;
      }
      if (!proved) {
        failed = target;
        ++failures;
      }
      const double width = failed / low - 1;
      const bool last = num_groups_ >= center_.size();
      // Far off, smaller groups would not help: what fits changes in a step.
      const bool exact = last || best_.ratio < 0.95;
      if (width > (exact ? 1e-4 : 0.004) && failures < (exact ? 20 : 4)) {
        continue;
      }
      if (last) {
        // A target that failed once may be reached from a better center.
        if (low <= restarted * (1 + 1e-5)) break;
        restarted = low;
        step = 0.01;
        failures = 0;
        continue;
      }
      num_groups_ = std::min(num_groups_ * 2, center_.size());
      step = std::clamp(width, 0.002, 0.02);
      failures = 0;
    }
    if (over() && best_.ratio > 0.99) keep_proof();
    proof_.order = pricer_.order();
    return std::move(proof_);
  }

 private:
  // Searches end then, whatever they have found.
  bool late() const {
    return !budget_.counts_moves() && budget_.spent(0) >= o_.until;
  }
  // The rest is reserved for proving what was found.
  bool over() const {
    return spent() >= o_.until * (budget_.counts_moves() ? 1 : 0.88);
  }

  double spent() const {
    return budget_.spent(
        budget_.counts_moves() ? (pricer_.work() + work_) / kWorkPerMove : 0);
  }

  // Distant targets take many searches: use nearer ones where these are slow.
  double first_step() {
    if (!pricer_.aim_at(o_.lower * 1.01)) return 0.05;
    const double before = spent();
    best_ = pricer_.find(center_, std::vector<double>(kinds_, 0));
    const double searches =
        (o_.until - before) / std::max(spent() - before, 1e-9);
    return std::clamp(0.05 * searches / 60, 0.008, 0.05);
  }

  void keep_proof() {
    const ProvedWorth now = pricer_.prove(center_, best_);
    if (now.value <= std::max(proof_.value, o_.lower)) return;
    proof_.value = now.value;
    proof_.worth = center_;
    // Half of the proof's slack is reserved for the checker.
    const double devices = price_of_all(p_.kinds, now.prices);
    const double by = devices > 0 ? (1 + sum_of(center_) / devices) / 2 : 1.0;
    proof_.prices = now.prices;
    for (double& price : proof_.prices) price *= by;
  }

  // Changes worth until it seems to prove the target. Returns whether it does.
  bool improve() {
    best_ = pricer_.find(center_, std::vector<double>(kinds_, 0));
    reach_ = kFirstReach;
    while (best_.ratio < kProved && !over()) {
      const double before = best_.ratio;
      const double hoped = improve_near_center();
      if (best_.ratio - before < 0.002 || hoped - best_.ratio < 1e-4) break;
    }
    return best_.ratio >= kProved;
  }

  // Units of a group are adjacent in the order. Borders are where few nets are
  // open, so that groups resemble parts of sets; in the end every unit is a
  // group. Returns their number.
  size_t make_groups(std::vector<int32_t>& group) const {
    const size_t n = center_.size();
    const double all = sum_of(scale_);
    const double wanted = num_groups_;
    std::vector<double> before = {0};  // worth before a position
    for (const int32_t u : pricer_.order()) {
      before.push_back(before.back() + scale_[u]);
    }
    std::vector<uint8_t> border(n + 1, num_groups_ >= n);
    border[0] = border[n] = 1;
    size_t borders = num_groups_ >= n ? n : 1;
    for (const double room : {0.7, 0.35, 0.0}) {
      for (const int32_t place : places_) {
        if (borders >= num_groups_) break;
        const size_t at = place;
        size_t left = at, right = at;
        while (!border[left]) --left;
        while (!border[right]) ++right;
        const double space =
            std::min(before[at] - before[left], before[right] - before[at]);
        if (left == right || space < room * all / wanted) continue;
        border[at] = 1;
        ++borders;
      }
    }
    group.assign(n, 0);
    int32_t count = -1;
    for (size_t i = 0; i < n; ++i) {
      count += border[i];
      group[pricer_.order()[i]] = count;
    }
    return static_cast<size_t>(count) + 1;
  }

  // Sorts positions between units of the order by the nets open there.
  void sort_places() {
    const size_t n = center_.size();
    std::vector<int32_t> at(n);
    for (size_t i = 0; i < n; ++i) {
      at[pricer_.order()[i]] = static_cast<int32_t>(i);
    }
    std::vector<double> open(n + 1, 0);
    for (int32_t net = 0; net < p_.pins.size(); ++net) {
      int32_t first = static_cast<int32_t>(n), last = 0;
      for (const int32_t u : p_.pins[net]) {
        first = std::min(first, at[u]);
        last = std::max(last, at[u]);
      }
      double most = 0;
      for (size_t k = 0; k < kinds_; ++k) {
        most = std::max({most, p_.in_of(net, k), p_.out_of(net, k)});
      }
      open[first + 1] += most;
      open[last + 1] -= most;
    }
    std::partial_sum(open.begin(), open.end(), open.begin());
    for (size_t i = 1; i < n; ++i) places_.push_back(i);
    std::stable_sort(places_.begin(), places_.end(), [&](int32_t a, int32_t b) {
      return open[a] < open[b] - 1e-9;
    });
  }

  // Adds rows for the known sets that are worth more than `share` of their
  // price, a limited number per kind, the worst first. Returns whether there
  // were any.
  bool add_rows(WorthLp& lp, const std::vector<double>& worth,
                const std::vector<double>& prices, double share, size_t most) {
    bool added = false;
    std::vector<std::pair<double, const FoundSet*>> rows;
    for (size_t k = 0; k < kinds_; ++k) {
      rows.clear();
      for (const FoundSet& set : pricer_.patterns()[k]) {
        work_ += static_cast<int64_t>(set.units.size()) / 4;
        if (set.load > pricer_.target() * (1 + 1e-3)) continue;
        const double over = worth_of(set, worth) - share * prices[k];
        if (over > 0) rows.push_back({-over, &set});
      }
      const size_t count = std::min(most, rows.size());
      std::partial_sort(
          rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count),
          rows.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : a.second < b.second;
          });
      for (size_t i = 0; i < count; ++i) lp.add_row(k, rows[i].second->units);
      added |= count > 0;
    }
    return added;
  }

  // Solves the LP, adding all known sets that matter as rows.
  bool solve(WorthLp& lp) {
    for (int round = 0; round < 30; ++round) {
      if (!lp.solve(&work_)) return false;
      if (!add_rows(lp, lp.worth(), lp.prices(), 1 + 1e-7, 8)) return true;
    }
    return true;
  }

  // Improves worth near the center until LP and search agree or little is left
  // to gain. Returns the ratio that is not excluded there.
  double improve_near_center() {
    std::vector<int32_t> group;
    const size_t groups = make_groups(group);
    // As in the LP: prices of all devices add up to 1.
    const double by = best_.ratio / sum_of(center_);
    for (double& w : center_) w *= by;
    for (double& price : best_.prices) price *= by;
    WorthLp lp(p_, center_, std::move(group), groups, scale_);
    lp.limit_to(reach_);
    add_rows(lp, center_, best_.prices, 0.9, groups + 50);
    double hoped = 0;
    int misses = 0;
    for (int step = 0; step < 100 && !over(); ++step) {
      if (!solve(lp)) break;
      if (misses == 0) hoped = lp.ratio();
      if (lp.ratio() < best_.ratio + 1e-5) break;
      const PricedWorth now = pricer_.find(lp.worth(), lp.prices());
      const double agreed =
          (now.ratio - best_.ratio) / (lp.ratio() - best_.ratio);
      if (agreed > 0) {
        best_ = now;
        center_ = lp.worth();
        lp.move_here();
        if (best_.ratio >= kProved) break;
        if (agreed > 0.8) reach_ = std::min(reach_ * 2, kMostReach);
        misses = 0;
      } else if (++misses % 3 == 0) {
        reach_ /= 2;
        if (reach_ < kLeastReach) break;
      } else {
        continue;
      }
      lp.limit_to(reach_);
    }
    return hoped;
  }

  const PackingProblem& p_;
  const Budget& budget_;
  const PatternOptions& o_;
  const size_t kinds_;
  PatternPricer pricer_;
  std::vector<double> center_;   // worth per unit
  std::vector<double> scale_;    // changes of worth are in proportion to it
  std::vector<int32_t> places_;  // in the order, the best borders first
  PricedWorth best_;             // of the center
  size_t num_groups_ = 0;        // wanted
  double reach_ = kFirstReach;
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
