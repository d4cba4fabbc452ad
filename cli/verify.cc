#include "cli/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/verify_rules.h"
#include "planner/check.h"

namespace berth::cli {

namespace {

constexpr double kRounding = 1e-9;

bool same(double a, double b) {
  return a == b || std::fabs(a - b) <= kRounding * std::max(a, b);
}

// Returns "" if it proves that no plan is below its target.
std::string check_witness(const PlanProblem& p, const Witness& w) {
  if (p.model == PlanModel::kPipeline) {
    // A bound of a load, or of the latency of one micro-batch.
    if (w.kind == "packing") return check_packing(loads_again(p), w);
    if (w.kind != "path") return "it is not one of a pipeline";
    PlanProblem one = p;
    one.model = PlanModel::kStep;
    return check_path(one, w);
  }
  if (w.kind == "packing") return check_packing(p, w);
  if (w.kind == "path") return check_path(p, w);
  if (w.kind == "search") return check_search(p, w);
  return fmt::format("nobody here checks proofs of kind \"{}\"", w.kind);
}

class Verifier {
 public:
  Verifier(const PlanProblem& problem, const PlanFile& file)
      : p_(problem), f_(file) {}

  std::vector<Finding> run() {
    if (f_.plan.device.empty()) {
      say("plan", "the file has none: " + f_.status);
      return found_;
    }
    say("status",
        f_.status == status_name(PlanStatus::kPlanned)
            ? ""
            : fmt::format("the file says \"{}\" and has a plan", f_.status));
    say("devices, kernels, groups", places());
    if (p_.model != PlanModel::kLoad) {
      say("sequence", sequence());
      if (!found_.back().wrong.empty()) return found_;  // it cannot be followed
    }
    if (p_.pipeline.order) say("schedule", schedule());
    const Recomputed now = recompute(p_, f_.plan);
    say("value", same(now.value, f_.value)
                     ? ""
                     : fmt::format("the file says {}, by the rules it is {}",
                                   f_.value, now.value));
    say("bytes and limits", memory(now.bytes));
    if (f_.bound > 0 || f_.gap >= 0) say("gap", gap());
    if (f_.bound > 0) say("bound", bound());
    return found_;
  }

 private:
  void say(const char* what, const std::string& wrong) {
    found_.push_back({what, wrong});
  }

  std::string places() const {
    std::vector<int32_t> of_group(static_cast<size_t>(p_.num_groups), -1);
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      const int32_t d = f_.plan.device[i];
      int32_t& group = of_group[p_.group[i]];
      if (group < 0) group = d;
      const char* wrong =
          group != d              ? "is apart from its group"
          : !p_.allowed[i].has(d) ? "may not be there"
          : p_.takes_time(i) && std::isinf(p_.costs.time(i, d).us)
              ? "has no kernel there"
              : nullptr;
      if (wrong == nullptr) continue;
      return fmt::format("\"{}\" on {} {}", p_.names[i],
                         p_.costs.devices[d].name, wrong);
    }
    return "";
  }

  // Checks that every op occurs once, after everything it waits for.
  std::string sequence() const {
    std::vector<int32_t> place(p_.names.size(), 0);
    for (size_t k = 0; k < f_.plan.sequence.size(); ++k) {
      int32_t& at = place[f_.plan.sequence[k]];
      if (at != 0 || !p_.takes_time(f_.plan.sequence[k])) {
        return fmt::format("\"{}\" stands there twice or takes no time",
                           p_.names[f_.plan.sequence[k]]);
      }
      at = static_cast<int32_t>(k) + 1;
    }
    for (const int32_t i : in_order(p_.graph)) {
      int32_t latest = 0;
      for (const int32_t v : p_.graph.reads[i]) {
        latest = std::max(latest, place[p_.graph.producer[v]]);
      }
      for (const int32_t c : p_.graph.controls[i]) {
        latest = std::max(latest, place[c]);
      }
      if (!p_.takes_time(i)) {
        place[i] = latest;
      } else if (place[i] <= latest) {
        return fmt::format("\"{}\" is missing or before what it waits for",
                           p_.names[i]);
      }
    }
    return "";
  }

  // One stage has no order.
  std::string schedule() const {
    const auto is_staged = [&](int32_t i) {
      return p_.takes_time(i) && (p_.once.empty() || p_.once[i] == 0) &&
             f_.plan.stage[i].stage != 0;
    };
    if (f_.plan.order == *p_.pipeline.order || f_.plan.stage.empty()) return "";
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      if (is_staged(i)) return "it is not the one that is asked for";
    }
    return "";
  }

  std::string memory(const std::vector<double>& bytes) const {
    for (size_t d = 0; d < bytes.size(); ++d) {
      const DeviceCost& device = p_.costs.devices[d];
      if (d < f_.peak_bytes.size() && !same(bytes[d], f_.peak_bytes[d])) {
        return fmt::format("the file says {} on {}, it holds {}",
                           f_.peak_bytes[d], device.name, bytes[d]);
      }
      const auto limit = static_cast<double>(device.memory_limit);
      if (limit > 0 && bytes[d] > limit) {
        return fmt::format("{} holds {}, its limit is {}", device.name,
                           bytes[d], device.memory_limit);
      }
    }
    return "";
  }

  std::string gap() const {
    if (!(f_.bound > 0)) return "the file says one, without a bound";
    const double gap = f_.value / f_.bound - 1;
    if (f_.bound > f_.value * (1 + kRounding)) return "the bound is above";
    if (std::fabs(gap - f_.gap) <= kRounding) return "";
    return fmt::format("the file says {}, it is {}", f_.gap, gap);
  }

  std::string bound() const {
    if (f_.witness.kind.empty()) return "the file has no witness of it";
    if (f_.bound > f_.witness.target * (1 + 1e-12)) {
      return fmt::format("the file says {}, its witness {}", f_.bound,
                         f_.witness.target);
    }
    return check_witness(p_, f_.witness);
  }

  const PlanProblem& p_;
  const PlanFile& f_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> verify(const PlanProblem& problem, const PlanFile& file) {
  return Verifier(problem, file).run();
}

}  // namespace berth::cli
