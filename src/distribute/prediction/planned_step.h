// fits_step: what a training step holds where, and the largest batch that fits.
//
// Traces, places and compiles steps as fit would; nothing runs. One thread.

#ifndef BERTH_DISTRIBUTE_PREDICTION_PLANNED_STEP_H_
#define BERTH_DISTRIBUTE_PREDICTION_PLANNED_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/placement.h"
#include "distribute/prediction/plan_step.h"
#include "distribute/strategy/strategy_core.h"
#include "function/graph_callable.h"

namespace berth::distribute {

// More examples are not looked for.
inline constexpr int64_t kMostExamples = int64_t{1} << 30;

struct StepMemory {
  struct Device {
    std::string device;  // full name
    int64_t peak_bytes = 0;
    int64_t available_bytes = 0;  // 0: no limit
  };
  struct Holder {
    std::string device, what;
    int64_t bytes = 0;
    Site site = {};
  };
  bool fits = false;
  int64_t largest_batch = -1;  // -1: no device has a limit; 0: none fits
  std::vector<Device> devices;
  std::vector<Holder> holders;  // at the peak, the largest first
  double step_us = 0;           // as predicted; 0: not known, or not asked for
};

// What a graph holds as a plan for these arguments. `options`: of the function
// that runs it. `memory_bytes` as below. `alone`: its variables are on the host
// yet, and its time is asked for; measurements may take a second.
StepMemory memory_of_graph(const Graph& graph, const FunctionOptions& options,
                           const std::vector<Shape>& shapes,
                           int64_t memory_bytes, bool alone = false);

// Plans the step on `batch` examples, and others to find the largest batch.
// `core`: the strategy that splits it; null: none, and `policy` places it.
// `memory_bytes`: what each device gives; 0: what its limit leaves beside what
// is there now, apart from the step's variables. Throws the errors of tracing
// and compiling.
StepMemory fits_step(const std::shared_ptr<StrategyCore>& core,
                     const std::function<StepToPlan(int64_t)>& step_of,
                     int64_t batch, int64_t memory_bytes,
                     const placement::Policy& policy = {});

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PREDICTION_PLANNED_STEP_H_
