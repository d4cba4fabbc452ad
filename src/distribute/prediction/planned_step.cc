// Plans of steps that do not run, for their memory.

#include "distribute/prediction/planned_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/no_reports.h"
#include "device/device_manager.h"
#include "device/memory_snapshot.h"
#include "distribute/strategy/fit_rewrite.h"
#include "exec/measure_plan.h"
#include "exec/report.h"
#include "function/trace_call.h"

namespace berth::distribute {

namespace {

int64_t available(const placement::DeviceRow& row, int64_t memory_bytes,
                  bool alone) {
  if (memory_bytes > 0) return memory_bytes;
  const bool counted =
      !alone || row.device == DeviceManager::get().host().str();
  return room_for_step(
      DeviceManager::get().lookup(DeviceName::parse(row.device)).allocator(),
      counted ? row.variable_bytes : 0);
}

StepMemory memory_of(const std::shared_ptr<StrategyCore>& core,
                     const StepToPlan& step, int64_t memory_bytes,
                     const placement::Policy& policy) {
  const NoReports quiet;
  FunctionOptions options;
  options.name = step.name;
  if (core) {
    options.rewrite = std::make_shared<FitRewrite>(
        core, FitRewriteOptions{.slices = step.slices});
  } else {
    options.placement = policy;
    if (step.slices > 0) options.rewrite = slices_rewrite(step.slices);
  }
  std::vector<Shape> shapes;
  for (const TensorSpec& a : step.args) shapes.push_back(a.shape);
  return memory_of_graph(trace_call(step.name, step.fn, step.args), options,
                         shapes, memory_bytes);
}

// How far the fullest device is above what it has, in bytes; at most 0: it
// fits. INT64_MIN: none has a limit.
int64_t excess_of(const StepMemory& m) {
  int64_t most = INT64_MIN;
  for (const StepMemory::Device& d : m.devices) {
    if (d.available_bytes == 0) continue;
    most = std::max(most, d.peak_bytes - d.available_bytes);
  }
  return most;
}

// The largest batch that fits, of a step that holds more the larger its batch
// is: along the line through the last two, between what is known.
template <class Fn>
int64_t largest_that_fits(int64_t first, int64_t least, const Fn& excess_with) {
  int64_t fit = least - 1, not_fit = kMostExamples + 1;
  int64_t at = first, before = 0;
  double excess_before = 0;
  for (int turn = 0; not_fit - fit > 1; ++turn) {
    const auto excess = static_cast<double>(excess_with(at));
    (excess <= 0 ? fit : not_fit) = at;
    const double slope =
        (excess - excess_before) / static_cast<double>(at - before);
    int64_t next = excess <= 0 ? 2 * at : at / 2;
    if (turn > 8) {
      next = fit + (not_fit - fit) / 2;
    } else if (turn > 0 && slope > 0) {
      next =
          at - std::llround(std::ceil(std::clamp(excess / slope, -1e12, 1e12)));
    }
    before = at;
    excess_before = excess;
    at = std::clamp(next, fit + 1, std::max(fit + 1, not_fit - 1));
  }
  return fit < least ? 0 : fit;
}

}  // namespace

StepMemory memory_of_graph(const Graph& graph, const FunctionOptions& options,
                           const std::vector<Shape>& shapes,
                           int64_t memory_bytes, bool alone) {
  GraphCallable call(graph, options);
  const GraphCallable::Prepared made = call.prepare(shapes);
  StepWork work = work_of(*made.plan, *made.placed);
  StepMemory memory;
  for (const placement::DeviceRow& d : work.report.devices) {
    memory.devices.push_back(
        {d.device, d.peak_bytes, available(d, memory_bytes, alone)});
  }
  for (StepWork::Holder& h : work.holders) {
    memory.holders.push_back(
        {std::move(h.device), std::move(h.what), h.bytes, h.site});
  }
  if (!alone) return memory;
  const PlanPrediction p = predict_plan(*made.plan, true);
  if (p.costs.known) memory.step_us = p.step_us;
  return memory;
}

StepMemory fits_step(const std::shared_ptr<StrategyCore>& core,
                     const std::function<StepToPlan(int64_t)>& step_of,
                     int64_t batch, int64_t memory_bytes,
                     const placement::Policy& policy) {
  const auto with = [&](int64_t n) {
    return memory_of(core, step_of(n), memory_bytes, policy);
  };
  StepMemory memory = with(batch);
  const int64_t excess = excess_of(memory);
  memory.fits = excess <= 0;
  if (excess == INT64_MIN) return memory;
  memory.largest_batch = largest_that_fits(
      batch, core ? core->num_replicas() : 1,
      [&](int64_t n) { return n == batch ? excess : excess_of(with(n)); });
  return memory;
}

}  // namespace berth::distribute
