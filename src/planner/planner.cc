#include "planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <utility>

#include "base/core_set.h"
#include "base/infinity.h"
#include "planner/check.h"
#include "planner/models.h"
#include "planner/plan_view.h"
#include "planner/units.h"

namespace berth {

namespace {

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
  std::optional<Evaluation> evaluation;
};

// Returns the candidate with the least value of those that keep all limits.
Priced price(const PlanProblem& p, std::vector<PricedCandidate>& priced) {
  Priced best;
  for (const PlanCandidate& c : p.candidates) {
    Evaluation e = evaluate(p, c.plan);
    priced.push_back({c.name, e.value, e.violations});
    const bool first = best.candidate == nullptr;
    if (e.violations.empty() && (first || e.value < best.value)) {
      best = {&c, e.value, std::move(e)};
    }
  }
  return best;
}

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

// For a tiny problem every plan is tried: the shares of the budget for an
// initial plan and for that.
constexpr double kTinySearch = 0.1, kTinyTrying = 0.7;
constexpr int64_t kTriesPerMove = 2, kStepsPerLook = 256;

// Returns whether all plans were tried; then `found` is the best of them if it
// is below `upper`, and `proved` their least value.
bool find_best(const PlanProblem& p, const PlannerOptions& o,
               const Budget& budget, double upper, Found& found,
               Bound& proved) {
  found = rules_of(p).search(p, budget.part(0, kTinySearch), o.seed);
  const Budget trying = budget.part(kTinySearch, kTinyTrying);
  int64_t steps = 0;
  const auto over = [&] {
    if (++steps % kStepsPerLook != 0) return false;
    return trying.spent(steps / (kTriesPerMove * Budget::kStreams)) >= 1;
  };
  double least = std::min(found.value, upper);
  Enumerated tried;
  while ((tried = enumerate_steps(p, least, over)).shorter.device.size() > 0) {
    Evaluation e = evaluate(p, tried.shorter);
    if (!(e.value < least)) return false;  // but for rounding
    found.value = least = e.value;
    found.plan = std::move(tried.shorter);
    found.evaluation = std::move(e);
  }
  found.moves += steps;
  if (!tried.all || !std::isfinite(least) || !(least > 0)) return false;
  proved.value = least;
  proved.how = "every placement and order that could be better was tried";
  proved.witness = {"search", least, {}};
  return true;
}

// Search and proof; a tiny problem is solved exactly.
Found find_and_prove_any(const PlanProblem& p, const PlannerOptions& o,
                         const Budget& budget, double upper, Bound& proved) {
  if (p.model != PlanModel::kStep || !o.prove || !why_not_tiny(p).empty()) {
    return find_and_prove(p, o, budget, proved);
  }
  Found best;
  if (find_best(p, o, budget, upper, best, proved)) return best;
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
  Priced best = price(p, answer.candidates);
  const double upper = best.value;
  const Budget budget =
      without_pricing(whole, o, seconds_since(begin), answer.candidates.size());
  Found found = find_and_prove_any(p, o, budget, upper, answer.bound);
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

std::string gap_text(double gap) {
  if (gap < 1e-6) return "no plan is better, to six digits";
  // Two digits; whole numbers as such.
  const double percent = 100 * gap;
  const int digits = percent >= 10    ? 0
                     : percent >= 1   ? 1
                     : percent >= 0.1 ? 2
                                      : 4;
  if (percent < 1000) {
    return fmt::format("no plan can be more than {:.{}f} % better", percent,
                       digits);
  }
  return fmt::format("no plan can be more than {:.0f} times as good", 1 + gap);
}

std::string certificate(const PlanProblem& p, const PlanAnswer& a) {
  if (a.status == PlanStatus::kInfeasible) {
    return "No plan is possible: " + a.conflict.text;
  }
  if (a.status == PlanStatus::kNothingFound) {
    return "No plan was found that keeps all limits, and none was proved "
           "impossible; more effort may find one";
  }
  std::string text = fmt::format(
      "Planned {}: {}",
      p.model == PlanModel::kLoad ? "load of the busiest device"
      : p.model == PlanModel::kPipeline
          ? fmt::format("step of {} micro-batch{}", p.pipeline.micro_batches,
                        p.pipeline.micro_batches == 1 ? "" : "es")
          : "step",
      time_text(a.value, p.time_unit));
  if (a.value <= 0) return text + "; no plan is better";
  if (a.bound.value <= 0) {
    return text + "; nothing was proved about better ones";
  }
  text +=
      fmt::format("; with these costs, links and limits no plan is under {}",
                  time_text(a.bound.value, p.time_unit));
  text += " (" + gap_text(a.gap());
  const std::string effort = a.in_moves
                                 ? fmt::format("{} moves", a.moves)
                                 : fmt::format("{:.2g} s together", a.seconds);
  return text + fmt::format("; covers {}; proof: {}; {})", rules_of(p).covered,
                            a.bound.how, effort);
}

}  // namespace berth
