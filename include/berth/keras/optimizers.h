// optimizers: how gradients change variables (tf.keras.optimizers).
//
// An Optimizer is a value handle. apply_gradients() works eagerly and inside a
// traced step, where the update is part of the plan. Slots are made at the
// first call, outside the trace, on the device of their variable. Rate and
// step counter are variables: changing them does not trace anew.
// One optimizer belongs to one thread at a time.

#ifndef BERTH_KERAS_OPTIMIZERS_H_
#define BERTH_KERAS_OPTIMIZERS_H_

#include <memory>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::keras {

class OptimizerBase;  // keras/optimizer_base.h

class Optimizer {
 public:
  // "sgd", "adam", "adamw", "rmsprop" or "adagrad" with Keras' defaults. Throws
  // errors::InvalidArgument for another name.
  Optimizer(const char* name);         // NOLINT: {.optimizer = "adam"}
  Optimizer(const std::string& name);  // NOLINT
  explicit Optimizer(std::shared_ptr<OptimizerBase> base)
      : base_(std::move(base)) {}

  // Updates variables[i] by grads[i]; empty gradients are skipped. In
  // strategy.run() by the sum of the gradients of all replicas. Throws
  // errors::InvalidArgument when counts or shapes differ or all are empty,
  // errors::FailedPrecondition in the scope of a strategy of several replicas
  // outside of run().
  void apply_gradients(const Tensors& grads,
                       const std::vector<Variable>& variables,
                       Site site = Site::here()) const;

  // float32 scalar; assign() to change the rate.
  Variable learning_rate() const;
  // int64 scalar: steps made.
  Variable iterations() const;
  // Slots and counters, for checkpoints.
  std::vector<Variable> variables() const;
  const std::string& name() const;
  const std::shared_ptr<OptimizerBase>& base() const { return base_; }

 private:
  std::shared_ptr<OptimizerBase> base_;
};

namespace optimizers {

struct SGDOptions {
  double momentum = 0;
  bool nesterov = false;
};
// var -= rate * grad; with momentum
// accum = momentum * accum - rate * grad, var += accum, or by Nesterov
// var += momentum * accum - rate * grad.
struct SGD : Optimizer {
  explicit SGD(double learning_rate = 0.01, SGDOptions options = {});
};

struct AdamOptions {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};
// Kingma and Ba 2015, with the bias correction in the rate as in Keras:
// var -= rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon).
struct Adam : Optimizer {
  explicit Adam(double learning_rate = 0.001, AdamOptions options = {});
};

struct AdamWOptions {
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};
// Loshchilov and Hutter 2019: var -= rate * weight_decay * var, then as Adam.
struct AdamW : Optimizer {
  explicit AdamW(double learning_rate = 0.001, AdamWOptions options = {});
};

struct RMSpropOptions {
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;  // divides by an estimate of the variance
};
// Tieleman and Hinton 2012: ms = rho * ms + (1 - rho) * grad^2;
// mom = momentum * mom + rate * grad / sqrt(ms + epsilon); var -= mom.
// Centered: ms - mg^2 in place of ms, mg = rho * mg + (1 - rho) * grad.
struct RMSprop : Optimizer {
  explicit RMSprop(double learning_rate = 0.001, RMSpropOptions options = {});
};

struct AdagradOptions {
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
};
// Duchi et al. 2011: accum += grad^2;
// var -= rate * grad / (sqrt(accum) + epsilon).
struct Adagrad : Optimizer {
  explicit Adagrad(double learning_rate = 0.001, AdagradOptions options = {});
};

}  // namespace optimizers

using optimizers::Adagrad;
using optimizers::Adam;
using optimizers::AdamW;
using optimizers::RMSprop;
using optimizers::SGD;

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZERS_H_
