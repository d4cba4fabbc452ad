// StepWatch: where the time of the steps of one fit goes.
//
// Acts between the steps of fit under a strategy of several replicas: times the
// waits for input; after 20 steps reads what the executor has recorded. Without
// such a strategy it does nothing. One thread.

#ifndef BERTH_KERAS_TRAINING_STEP_WATCH_H_
#define BERTH_KERAS_TRAINING_STEP_WATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "keras/training/batches.h"
#include "keras/training/training.h"

namespace berth::keras {

class StepWatch {
 public:
  // Steps until the split is measured.
  static constexpr int64_t kSteps = 20;

  StepWatch(const Model& model, const Model::Training& training);

  // next(element), timed.
  bool wait(const NextBatch& next, Tensors& element);
  // A step on `examples` is done. True when it is the one after which the
  // split is measured.
  bool after_step(int64_t examples);

  const std::optional<MeasuredSplit>& split() const { return split_; }

 private:
  const Model& model_;
  const Model::Training& training_;
  int64_t steps_ = 0, most_examples_ = 0;
  double waited_us_ = 0;
  std::optional<MeasuredSplit> split_;
};

// Reads the split off the report of a training step whose replicas have so many
// examples. Sums and the sending of what is summed are told from compute by
// the rows' `collective`.
MeasuredSplit split_of(const placement::Report& report,
                       const distribute::StrategyCore& core,
                       const std::vector<int64_t>& shares);

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_STEP_WATCH_H_
