// The rewrite that fit, evaluate and predict apply to their steps.
//
// Splits each step over replicas by the split rules. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_FIT_REWRITE_H_
#define BERTH_DISTRIBUTE_STRATEGY_FIT_REWRITE_H_

#include <memory>
#include <mutex>
#include <string>

#include "distribute/data_parallel/split_batch.h"
#include "distribute/strategy/strategy_core.h"
#include "function/graph_rewrite.h"

namespace berth::distribute {

class Rebalancer;  // distribute/strategy/rebalance.h

struct FitRewriteOptions {
  int slices = 0;         // set by the model; 0: set by the strategy
  bool balances = false;  // automatic shares: moves slices between runs
  // With several tasks: they compile at the same time and agree on the step.
  // False: the step will not run.
  bool agrees = false;
};

class FitRewrite final : public GraphRewrite {
 public:
  explicit FitRewrite(std::shared_ptr<StrategyCore> core,
                      FitRewriteOptions options = {});
  ~FitRewrite() override;

  void apply(Graph& graph) const override;
  bool accept(const Plan& plan) const override;
  void ran(Plan& plan) const override;
  uint64_t key() const override { return core_->shares_key(); }
  int slices() const override { return plan().slices; }
  bool in_order() const override { return core_->pipeline() != nullptr; }
  double timeout_seconds() const override {
    return core_->options().communication.timeout_seconds;
  }

  // Report of the step compiled last.
  SplitReport report() const;
  // "shares 8:24 -> 6:26: step 812 us -> 640 us"; "" when nothing moved.
  std::string moved() const;

 private:
  SplitPlan plan() const;
  SplitReport split(Graph& graph) const;
  SplitReport pipelined(Graph& graph) const;

  const std::shared_ptr<StrategyCore> core_;
  const FitRewriteOptions options_;
  const std::unique_ptr<Rebalancer> mover_;  // null: shares stay
  mutable std::mutex mutex_;
  mutable SplitReport report_;
};

// Returns the rewrite of a strategy.
std::shared_ptr<const FitRewrite> fit_rewrite(
    std::shared_ptr<StrategyCore> core, FitRewriteOptions options = {});

// Returns the rewrite of a step without a strategy that gives the same bits as
// replicas with that many slices; ops run where they would without it.
std::shared_ptr<const GraphRewrite> slices_rewrite(int slices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_FIT_REWRITE_H_
