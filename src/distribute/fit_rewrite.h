// The rewrite that fit, evaluate and predict hand to their steps.
//
// Splits each step over the replicas of a strategy by the split rules.
// Thread-safe.

#ifndef BERTH_DISTRIBUTE_FIT_REWRITE_H_
#define BERTH_DISTRIBUTE_FIT_REWRITE_H_

#include <memory>
#include <mutex>

#include "distribute/split_batch.h"
#include "distribute/strategy_core.h"
#include "function/graph_rewrite.h"

namespace berth::distribute {

class FitRewrite final : public GraphRewrite {
 public:
  FitRewrite(std::shared_ptr<StrategyCore> core, int slices)
      : core_(std::move(core)), slices_(slices) {}

  void apply(Graph& graph) const override;
  uint64_t key() const override { return core_->shares_key(); }
  int slices() const override { return plan().slices; }
  double timeout_seconds() const override {
    return core_->options().communication.timeout_seconds;
  }

  // Of the step compiled last.
  SplitReport report() const;

 private:
  SplitPlan plan() const;

  const std::shared_ptr<StrategyCore> core_;
  const int slices_;  // of the model; 0: as the strategy says
  mutable std::mutex mutex_;
  mutable SplitReport report_;
};

// Returns the rewrite of a strategy, for a model compiled with so many slices.
std::shared_ptr<const FitRewrite> fit_rewrite(
    std::shared_ptr<StrategyCore> core, int slices = 0);

// Returns the rewrite of a step without a strategy that gives the bits which
// replicas with so many slices give; ops run where they would without it.
std::shared_ptr<const GraphRewrite> slices_rewrite(int slices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_FIT_REWRITE_H_
