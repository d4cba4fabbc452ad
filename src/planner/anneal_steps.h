// StepAnnealer: moves a plan towards the shortest step.
//
// A state is a sequence and a device per unit. A move gives units another
// device, or an op another position; the StepTimer prices it from the first
// position that changes, and stops once it exceeds the threshold drawn for the
// move. One per thread; arrays are made once.

#ifndef BERTH_PLANNER_ANNEAL_STEPS_H_
#define BERTH_PLANNER_ANNEAL_STEPS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/infinity.h"
#include "planner/budget.h"
#include "planner/step_units.h"
#include "simulate/step_timer.h"

namespace berth {

class StepAnnealer {
 public:
  StepAnnealer(const StepUnits& units, StreamRandom& random);

  // Sets the plan to continue from. Returns its energy: its step, or more if it
  // breaks limits. Limits of a step longer than `most_us` are not looked at.
  double start(const PlacePlan& plan, double most_us = kInfinity);

  // Makes at most `most_moves`, until `spent` (called every few moves with the
  // moves so far) returns 1 or there is nothing to move. The thresholds are
  // shares of the energy, `hot` at first and `cold` at the end. Returns the
  // moves made.
  struct Cooling {
    double hot = 0.02, cold = 0.0005;
  };
  int64_t run(Cooling cooling, int64_t most_moves,
              const std::function<double(int64_t)>& spent);

  // The shortest plan of all runs that keeps all limits; infinite: none yet.
  double best_us() const { return best_us_; }
  const PlacePlan& best() const { return best_; }
  // The current plan and its energy.
  const PlacePlan& plan() const { return plan_; }
  double energy() const { return us_ * (1 + over_weight_ * over_); }
  bool fits() const { return over_ == 0; }

 private:
  struct Change {
    int32_t unit, device;
  };

  bool propose();
  bool move_cluster();
  bool swap_devices();
  bool reposition();
  bool move_op();
  int32_t pick_unit();
  int32_t pick_op();
  int32_t pick_device(int32_t unit);
  void give(int32_t unit, int32_t device);
  void set_device(int32_t unit, int32_t device);
  void shift(int32_t from, int32_t to);
  std::pair<int32_t, int32_t> window(int32_t op) const;
  void take_back();
  double over_limits();
  double over_limits(std::span<const int64_t> peaks) const;
  void keep_if_best();
  void find_critical();

  const StepUnits& units_;
  const PlanProblem& p_;
  StreamRandom& random_;
  StepTimer timer_;
  PlacePlan plan_, best_;
  double us_ = 0, over_ = 0, over_weight_ = 1, best_us_;
  std::vector<int32_t> device_;    // per unit
  std::vector<double> resident_;   // per device: bytes held throughout
  std::vector<int32_t> position_;  // per node
  std::vector<int32_t> movable_;   // units that allow several devices
  std::vector<int32_t> critical_;  // ops of a critical path
  std::vector<int32_t> previous_;  // per node: the op before it on its device
  std::vector<int32_t> last_;      // per device

  // The current move.
  int32_t first_ = 0;
  std::vector<Change> changes_;  // previous devices
  int32_t shift_from_ = -1, shift_to_ = -1;
  std::vector<int32_t> cluster_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_ANNEAL_STEPS_H_
