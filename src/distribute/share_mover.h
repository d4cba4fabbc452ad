// ShareMover: automatic shares of a training step.
//
// Begins with shares by the speed of the devices, cuts them down to what their
// memories hold when a step is compiled, then times steps now and then and
// moves whole slices to replicas that are done early; to what a step computes
// this makes no difference. Acts between the steps of one training loop: fit's
// rewrite calls it. One thread.

#ifndef BERTH_DISTRIBUTE_SHARE_MOVER_H_
#define BERTH_DISTRIBUTE_SHARE_MOVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distribute/balance.h"
#include "distribute/strategy_core.h"
#include "exec/plan.h"
#include "exec/plan_times.h"

namespace berth::distribute {

// Returns slices per replica in proportion to the speed of their devices as it
// is known: declared or measured rates, else their cores.
std::vector<int> shares_by_speed(const StrategyCore& core);

// Sets these shares once, if they are automatic and nobody has moved any.
void start_shares(StrategyCore& core);

class ShareMover {
 public:
  // Steps of a plan between samples, the runs of the first one (later ones have
  // more), and those of a new plan that come before.
  static constexpr int64_t kBetween = 256;
  static constexpr int kRuns = 9;
  static constexpr int64_t kWarmUp = 3;

  explicit ShareMover(std::shared_ptr<StrategyCore> core);

  // False: the plan needs more memory than a device has left; slices have been
  // moved to others.
  bool accept(const Plan& plan);
  // A step has run. May move slices.
  void ran(Plan& plan);

  int moves() const { return balancer_.moves(); }
  // "shares 8:24 -> 6:26: step 812 us -> 640 us"; "" when nothing moved.
  std::string str() const { return balancer_.str(); }

 private:
  void collect(Plan& plan);
  void move();

  const std::shared_ptr<StrategyCore> core_;
  Balancer balancer_;
  // Of the plan that runs.
  const Plan* plan_ = nullptr;
  int64_t batch_ = 0, largest_batch_ = 0;
  int64_t runs_ = 0;
  int to_collect_ = 0;
  std::optional<PlanTimes> before_;
  std::vector<PlanTimes> samples_;  // differences
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SHARE_MOVER_H_
