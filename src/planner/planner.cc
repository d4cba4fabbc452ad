#include "planner/planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <utility>

#include "base/core_set.h"
#include "base/infinity.h"
#include "planner/exact_steps.h"
#include "planner/models.h"
#include "planner/plan_view.h"
#include "simulate/pipeline_steps.h"

namespace berth {

namespace {

constexpr int32_t kMostTiny = 64;  // nodes, including those without time

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Whether an equally good earlier device may hold everything.
bool has_equal(const PlanProblem& p, int32_t device, DeviceSet all) {
  const DeviceCost& d = p.costs.devices[device];
  for (int32_t e = 0; e < device; ++e) {
    const DeviceCost& other = p.costs.devices[e];
    if (all.has(e) && other.device_class == d.device_class &&
        other.memory_limit == d.memory_limit) {
      return true;
    }
  }
  return false;
}

// Everything on one device if allowed, the rest on its first allowed one.
void add_one_device_each(PlanProblem& p) {
  const std::vector<DeviceSet> allowed = allowed_of_groups(p);
  if (std::ranges::count(allowed, DeviceSet{0}) > 0) return;
  const std::vector<int32_t> order = order_of_ops(p);
  DeviceSet all = ~DeviceSet{0};
  for (const DeviceSet& mask : allowed) all &= mask;
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    if (all.has(d) && has_equal(p, d, all)) continue;
    p.candidates.push_back(
        {"one device, " + short_name(p, d), {all_on(p, allowed, d), order}});
  }
}

struct Priced {
  const PlanCandidate* candidate = nullptr;
  double value = kInfinity;
  std::optional<Evaluation> evaluation;  // if it was simulated
};

// What a pipeline on one device takes: as long as its ops together. To simulate
// all its micro-batches takes long, and is needed only to see whether it keeps
// a limit.
std::optional<double> sum_on_one_device(const PlanProblem& p,
                                        const PlacePlan& plan) {
  if (p.model != PlanModel::kPipeline || p.pipeline.stash_weights) return {};
  const int32_t d = plan.device[0];
  const std::vector<MicroBatchRole> role = roles_of(p);
  double us = 0;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (plan.device[i] != d) return {};
    const bool each = role[i] == MicroBatchRole::kEach;
    if (!p.takes_time(i)) continue;
    us += p.costs.time(i, d).us * (each ? p.pipeline.micro_batches : 1);
  }
  return std::isfinite(us) ? std::optional(us) : std::nullopt;
}

// The candidates with the least value that keep all limits.
class Candidates {
 public:
  Candidates(const PlanProblem& p, std::vector<PricedCandidate>& priced)
      : p_(p), priced_(priced) {
    for (const PlanCandidate& c : p.candidates) {
      const auto sum = sum_on_one_device(p, c.plan);
      if (!sum) {
        price(c);
        continue;
      }
      priced_.push_back({c.name, *sum, {}});
      if (p.costs.devices[c.plan.device[0]].memory_limit > 0) {
        unsure_.push_back({&c, *sum, {}});
      } else if (*sum < best_.value) {
        best_ = {&c, *sum, {}};
      }
    }
  }
  // The best of those that need no simulation, or had one.
  const Priced& sure() const { return best_; }
  // The best of all that are below `value`.
  Priced below(double value) {
    for (const Priced& u : std::exchange(unsure_, {})) {
      if (u.value < std::min(value, best_.value)) price(*u.candidate);
    }
    return std::move(best_);
  }

 private:
  void price(const PlanCandidate& c) {
    Evaluation e = evaluate(p_, c.plan);
    const size_t number = &c - p_.candidates.data();
    if (number == priced_.size()) priced_.emplace_back();
    priced_[number] = {c.name, e.value, e.violations};
    const bool first = best_.candidate == nullptr;
    if (e.violations.empty() && (first || e.value < best_.value)) {
      best_ = {&c, e.value, std::move(e)};
    }
  }

  const PlanProblem& p_;
  std::vector<PricedCandidate>& priced_;
  Priced best_;
  std::vector<Priced> unsure_;
};

int threads_of(const PlannerOptions& o) {
  if (o.threads > 0) return std::min(o.threads, 64);
  return std::clamp(CoreSet::allowed().size(), 1, Budget::kStreams);
}

// Search and proof. When counting moves the proof comes first, so that the
// search always ends at the same move; in seconds they run concurrently.
Found find_and_prove(const PlanProblem& p, const PlannerOptions& o,
                     Budget budget, Bound& proved) {
  const ModelRules& rules = rules_of(p);
  const auto prove = [&](const Budget& b) {
    proved = rules.bound(p, b);
    // A plan that equals the bound up to rounding is optimal.
    budget.set_enough(proved.value * (1 + 1e-9));
  };
  if (!o.prove) return rules.search(p, budget, o.seed);
  if (budget.counts_moves() || budget.threads() == 1) {
    prove(budget.part(0, 0.3));
    return rules.search(p, budget.counts_moves() ? budget : budget.part(0.3, 1),
                        o.seed);
  }
  auto proof = std::async(std::launch::async, prove, budget);
  Found found = rules.search(p, budget, o.seed);
  proof.get();
  return found;
}

// For a tiny problem: the best plan by exhaustive search. The shares of the
// budget for an initial plan and for that search.
constexpr double kTinySearch = 0.1, kTinyTrying = 0.7;
constexpr int64_t kTriesPerMove = 2;

// Returns whether all plans were tried; then `found` is the best of them, and
// `proved` its value.
bool find_best(const PlanProblem& p, const StepUnits& units,
               const PlannerOptions& o, const Budget& budget, double upper,
               Found& found, Bound& proved) {
  found = rules_of(p).search(p, budget.part(0, kTinySearch), o.seed);
  Found best = found;
  if (upper < best.value) best.plan = {}, best.value = upper;
  const Budget trying = budget.part(kTinySearch, kTinyTrying);
  const int64_t most =
      budget.counts_moves()
          ? kTriesPerMove * Budget::kStreams * trying.moves_per_stream()
          : std::numeric_limits<int64_t>::max();
  const bool all = find_best_step(units, trying, most, best);
  found.moves = best.moves;
  if (best.value < found.value && best.any()) {
    found.plan = best.plan;
    found.value = best.value;
    found.evaluation.reset();
  }
  if (!all || !std::isfinite(best.value) || !(best.value > 0)) return false;
  proved.value = best.value;
  proved.how = "every placement and order that could be better was tried";
  proved.witness = {"search", best.value, {}};
  return true;
}

// Search and proof; a tiny problem is solved exactly.
Found find_and_prove_any(const PlanProblem& p, const PlannerOptions& o,
                         const Budget& budget, double upper, Bound& proved) {
  if (p.model != PlanModel::kStep || !o.prove || p.num_ops() > kMostTiny) {
    return find_and_prove(p, o, budget, proved);
  }
  const StepUnits units(p);
  if (!is_tiny(units)) return find_and_prove(p, o, budget, proved);
  Found best;
  if (find_best(p, units, o, budget, upper, best, proved)) return best;
  Found found = find_and_prove(p, o, budget.part(kTinyTrying, 1), proved);
  found.moves += best.moves;
  if (!(best.value < found.value)) return found;
  best.moves = found.moves;
  return best;
}

// The budget for search and proof that leaves time to price the result: about
// what pricing one of the candidates took.
Budget without_pricing(const Budget& whole, const PlannerOptions& o,
                       double seconds_of_candidates, size_t candidates) {
  if (whole.counts_moves() || candidates == 0) return whole;
  const double one = seconds_of_candidates / static_cast<double>(candidates);
  return whole.part(0, 1 - std::min(2 * one / o.seconds, 0.5));
}

// For a problem that was not proved infeasible.
void find_plan(PlanProblem& p, const PlannerOptions& o, const Budget& whole,
               PlanAnswer& answer) {
  add_one_device_each(p);
  const auto begin = Clock::now();
  Candidates candidates(p, answer.candidates);
  const Budget budget =
      without_pricing(whole, o, seconds_since(begin), answer.candidates.size());
  Found found =
      find_and_prove_any(p, o, budget, candidates.sure().value, answer.bound);
  Priced best = candidates.below(found.value);
  const double upper = best.value;
  answer.moves = found.moves;
  answer.start = found.start;
  if (best.candidate) {
    answer.plan = best.candidate->plan;
    answer.source = best.candidate->name;
    if (!(found.start.value < upper)) answer.start = {answer.source, upper};
  }
  if (found.any()) {
    Evaluation e = found.evaluation ? std::move(*found.evaluation)
                                    : evaluate(p, found.plan);
    if (e.violations.empty() && e.value < upper) {
      answer.plan = found.plan;
      answer.source = "search";
      best.evaluation = std::move(e);
    }
  }
  if (answer.plan.device.empty()) return;
  answer.status = PlanStatus::kPlanned;
  // Loads do not depend on the order.
  if (answer.plan.sequence.empty()) answer.plan.sequence = order_of_ops(p);
  if (!best.evaluation) best.evaluation = evaluate(p, answer.plan);
  answer.value = best.evaluation->value;
  answer.evaluation = std::move(*best.evaluation);
}

}  // namespace

PlanAnswer plan_placement(PlanProblem p, const PlannerOptions& o) {
  const auto begin = Clock::now();
  const int threads = threads_of(o);
  const Budget budget = o.moves > 0 ? Budget::of_moves(o.moves, threads)
                                    : Budget::of_seconds(o.seconds, threads);
  check_problem(p);
  PlanAnswer answer;
  answer.in_moves = budget.counts_moves();
  answer.conflict = prove_infeasible(p);
  if (answer.conflict.any()) {
    answer.status = PlanStatus::kInfeasible;
  } else if (p.num_ops() == 0) {  // nothing to search
    answer.status = PlanStatus::kPlanned;
    answer.evaluation = evaluate(p, {});
  } else {
    find_plan(p, o, budget, answer);
  }
  answer.seconds = seconds_since(begin);
  return answer;
}

}  // namespace berth
