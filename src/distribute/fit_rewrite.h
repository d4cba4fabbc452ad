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
  explicit FitRewrite(std::shared_ptr<StrategyCore> core)
      : core_(std::move(core)) {}

  void apply(Graph& graph) const override;
  uint64_t key() const override { return core_->shares_key(); }
  int slices() const override { return core_->split_plan().slices; }
  double timeout_seconds() const override {
    return core_->options().communication.timeout_seconds;
  }

  // Of the step compiled last.
  SplitReport report() const;

 private:
  const std::shared_ptr<StrategyCore> core_;
  mutable std::mutex mutex_;
  mutable SplitReport report_;
};

// Returns the rewrite of a strategy.
std::shared_ptr<const FitRewrite> fit_rewrite(
    std::shared_ptr<StrategyCore> core);

// Returns the rewrite of one device (a full name) that gives the bits which
// replicas with so many slices give.
std::shared_ptr<const GraphRewrite> slices_rewrite(std::string device,
                                                   int slices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_FIT_REWRITE_H_
