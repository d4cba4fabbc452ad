// Rebalancer: automatic shares of a training step.
//
// Starts with shares by the speed of the devices and, when a step is compiled,
// reduces them to what fits in memory. It then times steps now and then and
// moves whole slices to replicas that finish early; the results of a step do
// not depend on it. Acts between the steps of one training loop: the rewrite of
// fit calls it. One thread.

#ifndef BERTH_DISTRIBUTE_STRATEGY_REBALANCE_H_
#define BERTH_DISTRIBUTE_STRATEGY_REBALANCE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distribute/data_parallel/balance.h"
#include "distribute/strategy/strategy_core.h"
#include "exec/plan.h"
#include "exec/plan_times.h"

namespace berth::distribute {

// Returns slices per replica in proportion to the known speed of their devices:
// declared or measured rates, otherwise their cores.
std::vector<int> shares_by_speed(const StrategyCore& core);

// Sets these shares once, if they are automatic and have not been moved yet.
void start_shares(StrategyCore& core);

class Rebalancer {
 public:
  // Steps of a plan between samples, runs of the first sample (later ones have
  // more), and warm-up runs of a new plan.
  static constexpr int64_t kBetween = 256;
  static constexpr int kRuns = 9;
  static constexpr int64_t kWarmUp = 3;

  explicit Rebalancer(std::shared_ptr<StrategyCore> core);

  // Returns false if the plan needs more memory than a device has left; slices
  // have then been moved to others.
  bool accept(const Plan& plan);
  // Call after each step. May move slices.
  void ran(Plan& plan);

  int moves() const { return balancer_.moves(); }
  // "shares 8:24 -> 6:26: step 812 us -> 640 us"; "" when nothing moved.
  std::string str() const;

 private:
  void collect(Plan& plan);
  void move();

  const std::shared_ptr<StrategyCore> core_;
  Balancer balancer_;
  // The plan that runs.
  const Plan* plan_ = nullptr;
  int64_t batch_ = 0, largest_batch_ = 0;
  int64_t runs_ = 0;
  int to_collect_ = 0;
  std::optional<PlanTimes> before_;
  std::vector<PlanTimes> samples_;  // differences
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_REBALANCE_H_
