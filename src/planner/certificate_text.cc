// The certificate in words.

#include <fmt/format.h>

#include "planner/models.h"
#include "planner/units.h"

namespace berth {

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
