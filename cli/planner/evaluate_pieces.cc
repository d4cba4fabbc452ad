#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cli/planner/pieces.h"

namespace berth {

namespace {

// Names two devices whose pieces wait for each other, directly or not.
std::string waiting(const PlanProblem& p, const PiecesEvaluator& e) {
  std::string devices;
  DeviceSet named = 0;
  for (int32_t k = 0; k < e.num_pieces(); ++k) {
    const int32_t d = e.device_of(k);
    if (!e.is_waiting(k) || named.has(d)) continue;
    named |= device_bit(d);
    devices += (devices.empty() ? "" : ", ") +
               p.costs.devices[static_cast<size_t>(d)].name;
  }
  return fmt::format(
      "pieces of {} wait for each other, each for a value of another that "
      "is sent when that ends",
      devices);
}

}  // namespace

Evaluation evaluate_pieces(const PlanProblem& p, const PlacePlan& plan) {
  const PiecesProblem problem(p);
  PiecesEvaluator evaluator(problem);
  std::vector<int32_t> device;
  for (const int32_t i : problem.original) {
    device.push_back(plan.device[static_cast<size_t>(i)]);
  }
  Evaluation e;
  e.value = evaluator.value(device);
  if (!evaluator.followed()) e.violations.push_back(waiting(p, evaluator));
  e.devices.resize(static_cast<size_t>(p.num_devices()));
  for (int32_t k = 0; k < evaluator.num_pieces(); ++k) {
    e.devices[static_cast<size_t>(evaluator.device_of(k))].busy +=
        evaluator.length_of(k);
  }
  for (size_t i = 0; i < plan.device.size(); ++i) {
    e.devices[static_cast<size_t>(plan.device[i])].bytes += p.resident_bytes[i];
  }
  return e;
}

}  // namespace berth
