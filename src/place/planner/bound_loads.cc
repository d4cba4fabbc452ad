// The throughput bound: packing in stages, each building on the last one.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "place/planner/cut_sizes.h"
#include "place/planner/models.h"
#include "place/planner/packing.h"
#include "place/planner/patterns.h"
#include "place/planner/sum_proof.h"

namespace berth {

namespace {

constexpr double kShaved = 1e-6;  // subtracted from values, for rounding
constexpr int32_t kMostForPatterns = 20000;  // units

class LoadsProver {
 public:
  LoadsProver(const PlanProblem& problem, const Budget& budget, double upper)
      : load_(problem), budget_(budget), upper_(upper), p_(load_, {}) {
    for (const PackingKind& k : p_.kinds) counts_.push_back(k.count);
    choose_others();
  }

  Bound prove() {
    if (!prove_simply()) return {};
    prove_by_cuts(p_.num_units() <= 1000 ? 0.3 : 0.7);
    prove_by_sets(others_.empty() ? 1 : 0.6);
    for (size_t i = 0; i < others_.size(); ++i) {
      const double share =
          static_cast<double>(i + 1) / static_cast<double>(others_.size());
      p_ = PackingProblem(load_, {.copies = others_[i].copies,
                                  .memory = others_[i].memory,
                                  .memory_at = lower_ * (1 - 2 * kShaved)});
      begin_worth();
      prove_by_cuts(0.6 + 0.4 * share);
      prove_by_sets(0.6 + 0.4 * share);
    }
    return std::move(bound_);
  }

 private:
  // The largest unit, and total work over devices. False: no unit takes time,
  // or one fits nowhere, which is reported elsewhere.
  bool prove_simply() {
    double largest = 0;
    int32_t unit = -1;
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      const auto sizes = sizes_of(p_.size, u);
      const double least = *std::min_element(sizes.begin(), sizes.end());
      if (std::isinf(least)) return false;
      if (least <= largest) continue;
      largest = least;
      unit = u;
    }
    const SumProof sum = prove_by_sum(p_.size, counts_);
    if (!(std::max(sum.worth, largest) > 0)) return false;
    worth_ = worth_of_all(p_.size, sum.prices);
    if (sum.worth >= largest) {
      state(sum.worth, "work of all devices");
      // As shares of the target: together slightly more than all devices.
      std::vector<double> worth = worth_;
      for (double& w : worth) w /= sum.worth * (1 - kShaved / 2);
      add_sizes(std::move(worth), sum.prices, {});
    } else {
      state(largest, "largest op");
      std::vector<double> worth(worth_.size(), 0);
      worth[static_cast<size_t>(unit)] = 1;
      add_sizes(worth, std::vector<double>(p_.num_kinds(), 0),
                std::vector<double>(p_.size.size(), 1));
    }
    return true;
  }

  // Averages that include copy engines and memory, where these are used.
  void choose_others() {
    const auto devices = static_cast<int32_t>(load_.limit.size());
    const bool engines =
        std::any_of(load_.receiver.begin(), load_.receiver.end(),
                    [&](LoadMachine m) { return m >= devices; });
    const double bytes =
        std::accumulate(load_.bytes.begin(), load_.bytes.end(), 0.0);
    const double limits =
        std::accumulate(load_.limit.begin(), load_.limit.end(), 0.0);
    if (engines) {
      for (const double c : {0.3, 0.6}) others_.push_back({.copies = c});
    }
    if (bytes > 0.4 * limits) {
      for (const double m : {0.2, 0.5}) others_.push_back({.memory = m});
    }
  }

  // Initial worth, by sizes alone.
  void begin_worth() {
    worth_ = worth_of_all(p_.size, prove_by_sum(p_.size, counts_).prices);
  }

  // Sizes inflated by copies, until targets and cuts agree.
  void prove_by_cuts(double until) {
    const int32_t n = p_.num_units();
    // Cuts that matter hold roughly one device's work.
    const auto devices = static_cast<int32_t>(load_.limit.size());
    CutSizes cuts(p_, lower_,
                  n <= 1000 ? n : std::clamp(2 * n / devices, 400, 1000));
    for (int round = 0; round < 3 && budget_.spent(0) < until; ++round) {
      const double before = lower_, begun = budget_.spent(0);
      cuts.refine(lower_ * 1.01, budget_, begun + 0.75 * (until - begun));
      const double proved = greatest(cuts, lower_, until);
      // A smaller gain does not justify a much longer proof.
      if (proved > lower_ * (1 + 1e-4)) note_cuts(cuts, proved);
      if (lower_ <= before * (1 + 1e-3)) break;
    }
  }

  // The greatest T that the known cuts prove; `from`: none. Close to it if time
  // runs out.
  double greatest(const CutSizes& cuts, double from, double until) const {
    const auto proved = [&](double target) {
      return prove_by_sum(shares_at(cuts, target), counts_).worth > 1;
    };
    double low = from, high = from * 1.02;
    while (proved(high)) {
      low = high;
      high *= 1.1;
    }
    while (high > low * (1 + 1e-5) && budget_.spent(0) < until) {
      const double middle = (low + high) / 2;
      (proved(middle) ? low : high) = middle;
    }
    return low;
  }

  void note_cuts(const CutSizes& cuts, double target) {
    const std::vector<double> share = shares_at(cuts, target);
    SumProof sum = prove_by_sum(share, counts_);
    std::vector<double> worth = worth_of_all(share, sum.prices);
    for (double& w : worth) {
      if (std::isfinite(w)) continue;
      // This one fits nowhere: no other is needed.
      w = 1;
      for (double& other : worth) other = &other == &w ? 1 : 0;
      sum.prices.assign(p_.num_kinds(), 0);
      break;
    }
    std::vector<double> q(share.size());
    for (size_t at = 0; at < q.size(); ++at) {
      cuts.size(static_cast<int32_t>(at / p_.num_kinds()), at % p_.num_kinds(),
                target, &q[at]);
    }
    state(target, "cut-inflated packing");
    add_sizes(worth, sum.prices, q);
    worth_ = std::move(worth);
  }

  void prove_by_sets(double until) {
    if (p_.num_units() > kMostForPatterns) return;
    PatternOptions o;
    o.lower = lower_;
    o.upper = upper_;
    o.until = until;
    const PatternProof proof = prove_by_patterns(p_, worth_, budget_, o);
    if (proof.value <= lower_) return;
    state(proof.value, "packing by patterns with their copies");
    add("worth", proof.worth);
    add("price", proof.prices);
    add("order", {proof.order.begin(), proof.order.end()});
  }

  std::vector<double> shares_at(const CutSizes& cuts, double target) const {
    std::vector<double> share(p_.size.size());
    for (size_t at = 0; at < share.size(); ++at) {
      share[at] = cuts.size(static_cast<int32_t>(at / p_.num_kinds()),
                            at % p_.num_kinds(), target) /
                  target;
    }
    return share;
  }
  std::span<const double> sizes_of(const std::vector<double>& of_all,
                                   int32_t unit) const {
    return std::span(of_all).subspan(static_cast<size_t>(unit) * p_.num_kinds(),
                                     p_.num_kinds());
  }
  std::vector<double> worth_of_all(const std::vector<double>& share,
                                   const std::vector<double>& prices) const {
    std::vector<double> worth;
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      worth.push_back(worth_of(sizes_of(share, u), prices));
    }
    return worth;
  }

  // Records what is proved, and begins its witness (docs/formats.md).
  void state(double value, const char* how) {
    lower_ = value;
    bound_.value = value * (1 - kShaved);
    bound_.how = how;
    bound_.witness = {"packing", bound_.value, {}};
    const PackingWeights& w = p_.weights;
    add("weights", {w.copies, w.memory, w.memory_at});
    std::vector<double> kind(load_.limit.size());
    for (size_t k = 0; k < p_.num_kinds(); ++k) {
      for (DeviceSet m = p_.kinds[k].devices; m; m.drop_first()) {
        kind[static_cast<size_t>(m.first())] = static_cast<double>(k);
      }
    }
    add("kind", std::move(kind));
  }
  void add(const char* name, std::vector<double> array) {
    bound_.witness.arrays.emplace_back(name, std::move(array));
  }
  void add_sizes(std::vector<double> worth, std::vector<double> prices,
                 std::vector<double> q) {
    q.resize(p_.size.size(), -1);
    add("worth", std::move(worth));
    add("price", std::move(prices));
    add("q", std::move(q));
  }

  const LoadProblem load_;
  const Budget& budget_;
  const double upper_;
  PackingProblem p_;
  std::vector<PackingWeights> others_;  // to check as well
  std::vector<double> counts_;          // of devices, per kind
  double lower_ = 0;                    // proved
  std::vector<double> worth_;           // per unit, by sizes
  Bound bound_;
};

}  // namespace

Bound bound_loads(const PlanProblem& problem, const Budget& budget,
                  double upper) {
  return LoadsProver(problem, budget, upper).prove();
}

}  // namespace berth
