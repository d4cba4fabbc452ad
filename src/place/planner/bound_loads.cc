// The bound of throughput: packing, in stages, each from what the last proved.

#include <algorithm>
#include <cmath>
#include <limits>

#include "place/planner/cut_sizes.h"
#include "place/planner/models.h"
#include "place/planner/packing.h"
#include "place/planner/patterns.h"
#include "place/planner/sum_proof.h"

namespace berth {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kShaved = 1e-6;  // off every value stated, for rounding

class Prover {
 public:
  Prover(const PlanProblem& problem, const Budget& budget, double upper)
      : load_(problem), budget_(budget), upper_(upper), p_(load_, {}) {
    for (const PackingKind& k : p_.kinds) counts_.push_back(k.count);
  }

  Bound prove() {
    prove_simply();
    if (bound_.value > 0) prove_by_cuts();
    if (bound_.value > 0) prove_by_sets();
    return std::move(bound_);
  }

 private:
  // Largest unit, and work against devices.
  void prove_simply() {
    double largest = 0;
    const size_t kinds = p_.num_kinds();
    for (size_t at = 0; at < p_.size.size(); at += kinds) {
      const double least = *std::min_element(
          p_.size.begin() + static_cast<std::ptrdiff_t>(at),
          p_.size.begin() + static_cast<std::ptrdiff_t>(at + kinds));
      if (std::isinf(least)) return;  // infeasible: others say so
      largest = std::max(largest, least);
    }
    const SumProof sum = prove_by_sum(p_.size, counts_);
    const bool by_sum = sum.worth > largest;
    lower_ = std::max(largest, sum.worth);
    state(lower_, by_sum ? "work of all devices" : "largest op");
    for (size_t at = 0; at < p_.size.size(); at += kinds) {
      worth_.push_back(worth_of({p_.size.data() + at, kinds}, sum.prices));
    }
  }

  std::vector<double> shares_at(const CutSizes& cuts, double target) const {
    std::vector<double> share(p_.size.size());
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      for (size_t k = 0; k < p_.num_kinds(); ++k) {
        share[static_cast<size_t>(u) * p_.num_kinds() + k] =
            cuts.size(u, k, target) / target;
      }
    }
    return share;
  }

  // The greatest T that the known cuts prove; at least `from`.
  double greatest(const CutSizes& cuts, double from) const {
    double low = from, high = from * 1.02;
    const auto proved = [&](double target) {
      return prove_by_sum(shares_at(cuts, target), counts_).worth > 1;
    };
    while (proved(high) && high < upper_ * 4 && high < from * 1e6) {
      low = high;
      high *= 1.1;
    }
    while (high > low * (1 + 1e-5)) {
      const double middle = (low + high) / 2;
      (proved(middle) ? low : high) = middle;
    }
    return low;
  }

  void prove_by_cuts() {
    const int32_t n = p_.num_units();
    CutSizes cuts(p_, lower_, n <= 2000 ? n : n <= 20000 ? 400 : 200);
    for (int round = 0; round < 4; ++round) {
      const double target = std::min(lower_ * 1.01, std::max(upper_, lower_));
      cuts.refine(target, budget_, 0.5);
      const double proved = greatest(cuts, lower_);
      const bool news = proved > lower_ * (1 + 1e-4);
      if (proved > lower_) {
        lower_ = proved;
        state(proved, "cut-inflated packing");
        const std::vector<double> share = shares_at(cuts, proved);
        const SumProof sum = prove_by_sum(share, counts_);
        worth_.clear();
        for (size_t at = 0; at < share.size(); at += p_.num_kinds()) {
          worth_.push_back(
              worth_of({share.data() + at, p_.num_kinds()}, sum.prices));
        }
      }
      if (!news || budget_.spent(0) >= 0.5) break;
    }
  }

  void prove_by_sets() {
    if (p_.num_units() > 20000) return;
    PatternOptions o;
    o.lower = lower_;
    o.upper = upper_;
    o.until = 0.9;
    const PatternProof proof = prove_by_patterns(p_, worth_, budget_, o);
    if (proof.value > lower_) {
      lower_ = proof.value;
      state(proof.value, "packing by patterns with their copies");
    }
  }

  void state(double value, const char* how) {
    bound_.value = value * (1 - kShaved);
    bound_.how = how;
  }

  LoadProblem load_;
  const Budget& budget_;
  const double upper_;
  PackingProblem p_;
  std::vector<double> counts_;
  double lower_ = 0;           // proved
  std::vector<double> worth_;  // per unit, that proved it
  Bound bound_;
};

}  // namespace

Bound bound_loads(const PlanProblem& problem, const Budget& budget,
                  double upper) {
  return Prover(problem, budget, upper).prove();
}

}  // namespace berth
