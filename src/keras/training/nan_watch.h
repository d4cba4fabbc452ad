// NaNWatch: notices the first loss of a fit that is not finite.
//
// Acts after each step of fit, as FitOptions::on_nan says; it reads a loss only
// where that waits for nothing, else at the end of the epoch. Weights are kept
// from before the first steps, and while the loss is far above the first one,
// so that the step can be run again to name the layer. One thread.

#ifndef BERTH_KERAS_TRAINING_NAN_WATCH_H_
#define BERTH_KERAS_TRAINING_NAN_WATCH_H_

#include <cstdint>
#include <string>

#include "keras/training/batches.h"
#include "keras/training/training.h"

namespace berth::keras {

class NaNWatch {
 public:
  // First steps whose weights are kept, of models up to so many bytes.
  static constexpr int64_t kFirstSteps = 4;
  static constexpr int64_t kMostBytes = 64 << 20;
  // How far above the first loss others make it suspicious.
  static constexpr double kGrowth = 4;

  // Where a step is, all from 0.
  struct Where {
    int64_t step = 0, batch = 0;
    int epoch = 0;
  };

  NaNWatch(Model& model, Model::Training& training, const FitOptions& options,
           Site site);

  void before_step(int64_t step);
  // Throws errors::InvalidArgument under OnNaN::kRaise.
  void after_step(const Tensor& loss, const Batch& batch, const Where& where);
  // The mean of an epoch, which is read anyway.
  void after_epoch(double loss, const Where& last);

 private:
  void tell(double loss, const std::string& where, const std::string& origin);
  std::string origin(const Batch& batch);
  std::string by_running_again(const Batch& batch);

  Model& model_;
  Model::Training& training_;
  const OnNaN policy_;
  const Site site_;
  bool watching_;
  bool keeps_weights_;
  bool suspicious_ = false;
  double first_loss_ = -1;  // below 0: none yet
  Tensors before_;          // weights; empty: not kept
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_NAN_WATCH_H_
