// losses: what training makes small (tf.keras.losses).
//
// A Loss is a value handle: a name and a function that gives one value per
// sample; calling it gives their mean, a scalar. Works eagerly, under tapes
// and in traces. Throw errors::InvalidArgument for shapes that do not fit.
// Thread-safe.

#ifndef BERTH_KERAS_LOSSES_H_
#define BERTH_KERAS_LOSSES_H_

#include <functional>
#include <string>

#include "berth/tensor.h"

namespace berth::keras {

class Loss {
 public:
  using Fn = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

  Loss() = default;  // none
  // Finds one by Keras' name: mse or mean_squared_error,
  // categorical_crossentropy, sparse_categorical_crossentropy (both of
  // probabilities). Throws errors::InvalidArgument for another name.
  Loss(const char* name);         // NOLINT: {.loss = "mse"}
  Loss(const std::string& name);  // NOLINT
  // One of your own: fn(y_true, y_pred) -> values whose mean is the loss.
  Loss(std::string name, Fn fn) : name_(std::move(name)), fn_(std::move(fn)) {}

  // Mean over all samples, a scalar.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    Site site = Site::here()) const;
  // One value per sample.
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return fn_(y_true, y_pred);
  }
  const std::string& name() const { return name_; }
  bool defined() const { return static_cast<bool>(fn_); }

 private:
  std::string name_;
  Fn fn_;
};

namespace losses {

struct CrossentropyOptions {
  bool from_logits = false;  // y_pred are logits, not probabilities
};

// mean((y_true - y_pred)^2) over the last axis.
Loss MeanSquaredError();
// -sum(y_true log(y_pred)) over the last axis; y_true are probabilities.
Loss CategoricalCrossentropy(CrossentropyOptions options = {});
// The same for labels [n] or [n, 1] that name the true class of y_pred [n, c].
Loss SparseCategoricalCrossentropy(CrossentropyOptions options = {});

}  // namespace losses
}  // namespace berth::keras

#endif  // BERTH_KERAS_LOSSES_H_
