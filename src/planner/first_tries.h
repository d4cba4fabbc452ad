// FirstTries: the plans that an expert would try first.
//
// Contiguous stages of layers on 1, 2, ... devices, with shares by work, by
// speed or by memory, in either direction, and with weight gradients on
// separate devices. Searches begin with the best of them. Made once per
// problem, then read-only. List scheduling over all devices is one of the rules
// of ListScheduler instead.

#ifndef BERTH_PLANNER_FIRST_TRIES_H_
#define BERTH_PLANNER_FIRST_TRIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/budget.h"
#include "planner/device_schedule.h"
#include "planner/layer_keys.h"
#include "planner/step_units.h"

namespace berth {

// Layers in stages, one device each.
struct StageCut {
  std::vector<int32_t> on;      // per stage: its device
  std::vector<int32_t> beside;  // and that of its weight gradients; or empty
  std::vector<int32_t> ends;    // and the place after its last layer
  DeviceScheduler::First order = DeviceScheduler::First::kPath;
};

class FirstTries {
 public:
  // `with_order`: sequences matter, so one split into stages may be tried in
  // several orders.
  FirstTries(const StepUnits& units, bool with_order);

  int count() const { return static_cast<int>(tries_.size()); }
  std::string name(int number) const;  // "4 stages, by speed"
  // Returns a device per node, as groups and masks allow.
  std::vector<int32_t> devices(const StageCut& cut) const;
  StageCut cut(int number) const { return cut(tries_[number]); }
  // Moves a border, swaps two stages, or takes the other order.
  void vary(StageCut& cut, StreamRandom& random) const;

 private:
  enum class Share : uint8_t { kWork, kSpeed, kMemory };  // of each stage
  struct Try {
    int32_t stages;
    Share share;
    bool beside;  // weight gradients on as many further devices
    bool reversed;
    bool fastest_first;
    DeviceScheduler::First order = DeviceScheduler::First::kPath;
  };

  StageCut cut(const Try& t) const;
  void add_layers();
  void add_tries();
  int32_t allowed_near(int32_t unit, int32_t device) const;

  const StepUnits& units_;
  const PlanProblem& p_;
  const bool with_order_;
  std::vector<double> speed_;          // per device, the fastest 1
  std::vector<int32_t> fastest_;       // devices worth a stage, fastest first
  std::vector<double> work_, bytes_;   // per unit
  std::vector<uint8_t> is_of_weight_;  // per unit: gradients of weights alone
  std::vector<int32_t> by_layer_;      // units with ops
  std::vector<double> layer_;          // and the layer of each
  bool folds_ = false;                 // layers have gradients
  std::vector<Try> tries_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_FIRST_TRIES_H_
