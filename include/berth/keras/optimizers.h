// optimizers: how gradients change variables (tf.keras.optimizers).
//
// An Optimizer is a value handle. apply_gradients() works eagerly and inside a
// traced step, where the update is part of the plan. Slots are made at the
// first call, outside the trace, on the device of their variable. Rate and step
// counter are variables: changing them does not retrace. One optimizer belongs
// to one thread at a time.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_OPTIMIZERS_H_
#define BERTH_KERAS_OPTIMIZERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/keras/schedules.h"
#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::keras {

class OptimizerBase;  // keras/optimizer_base.h

class Optimizer {
 public:
  // A class below by its name, in any case ("adam"), with Keras' defaults.
  // Throws errors::InvalidArgument for another name.
  Optimizer(const char* name);         // NOLINT: {.optimizer = "adam"}
  Optimizer(const std::string& name);  // NOLINT
  explicit Optimizer(std::shared_ptr<OptimizerBase> base)
      : base_(std::move(base)) {}

  // Updates variables[i] by grads[i]; empty gradients are skipped. In
  // strategy.run() it uses the sum of the gradients of all replicas. Throws
  // errors::InvalidArgument if counts or shapes differ or all are empty,
  // errors::FailedPrecondition in the scope of a strategy of several replicas
  // outside run().
  void apply_gradients(const Tensors& grads,
                       const std::vector<Variable>& variables,
                       Site site = Site::here()) const;
  // Makes slots and counters of these variables now instead of at the first
  // step.
  void build(const std::vector<Variable>& variables) const;
  // The value to differentiate: the loss times loss_scale_factor, or times the
  // scale of a LossScaleOptimizer, by which apply_gradients() divides. fit does
  // this itself.
  Tensor scale_loss(const Tensor& loss, Site site = Site::here()) const;

  // float32 scalar; assign() to change the rate. With a schedule, the rate of
  // the last step.
  Variable learning_rate() const;
  // Throws errors::FailedPrecondition if a schedule sets the rate.
  void set_learning_rate(double rate, Site site = Site::here()) const;
  const LearningRateSchedule& schedule() const;  // false: none
  // int64 scalar: number of steps.
  Variable iterations() const;
  // Slots and counters, for checkpoints.
  std::vector<Variable> variables() const;
  const std::string& name() const;

  // Excludes variables from weight_decay: these, and those whose names contain
  // one of the texts. Before the first step.
  void exclude_from_weight_decay(
      const std::vector<Variable>& variables,
      const std::vector<std::string>& names = {}) const;
  // With use_ema: sets variables to their averages, permanently (fit does so at
  // its end); exchanges the two. Otherwise nothing.
  void finalize_variable_values(const std::vector<Variable>& variables,
                                Site site = Site::here()) const;
  void swap_averages(const std::vector<Variable>& variables,
                     Site site = Site::here()) const;

  const std::shared_ptr<OptimizerBase>& base() const { return base_; }

 private:
  std::shared_ptr<OptimizerBase> base_;
};

namespace optimizers {

// Options of all optimizers, in the order in which they act:
//   loss_scale_factor            scale_loss() multiplies, gradients are divided
//   gradient_accumulation_steps  updates every so many steps, by the mean of
//                                the gradients
//   clipnorm, clipvalue,         limits of the norm of each gradient, of each
//   global_clipnorm              element, of the norm of all; one of the three
//   weight_decay                 var -= rate * weight_decay * var
//   use_ema, ema_momentum        keeps average = momentum * average +
//                                (1 - momentum) * var of each variable
//   ema_overwrite_frequency      sets variables to it every so many steps
// 0 disables a number. The rate comes before the options or among them:
// Adam(1e-3, {.beta_1 = 0.8}) is Adam({.learning_rate = 1e-3, .beta_1 = 0.8}).
// Where both are given, the first counts.

struct SGDOptions {
  LearningRate learning_rate = 0.01;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// var -= rate * grad; with momentum
// accum = momentum * accum - rate * grad, var += accum, or by Nesterov
// var += momentum * accum - rate * grad.
struct SGD : Optimizer {
  explicit SGD(LearningRate learning_rate = 0.01, SGDOptions options = {});
  explicit SGD(SGDOptions options) : SGD(options.learning_rate, options) {}
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;  // divides by the largest v so far
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Kingma and Ba 2015, with the bias correction in the rate as in Keras:
// var -= rate * sqrt(1 - beta_2^t) / (1 - beta_1^t) * m / (sqrt(v) + epsilon).
struct Adam : Optimizer {
  explicit Adam(LearningRate learning_rate = 0.001, AdamOptions options = {});
  explicit Adam(AdamOptions options) : Adam(options.learning_rate, options) {}
};

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;  // divides by the largest v so far
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Adam with weight decay (Loshchilov and Hutter 2019).
struct AdamW : Optimizer {
  explicit AdamW(LearningRate learning_rate = 0.001, AdamWOptions options = {});
  explicit AdamW(AdamWOptions options)
      : AdamW(options.learning_rate, options) {}
};

struct AdamaxOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Adam by the largest gradient (Kingma and Ba 2015): u = max(beta_2 * u,
// |grad|); var -= rate / (1 - beta_1^t) * m / (u + epsilon).
struct Adamax : Optimizer {
  explicit Adamax(LearningRate learning_rate = 0.001,
                  AdamaxOptions options = {});
  explicit Adamax(AdamaxOptions options)
      : Adamax(options.learning_rate, options) {}
};

using NadamOptions = AdamaxOptions;
// Adam with Nesterov's look-ahead (Dozat 2015).
struct Nadam : Optimizer {
  explicit Nadam(LearningRate learning_rate = 0.001, NadamOptions options = {});
  explicit Nadam(NadamOptions options)
      : Nadam(options.learning_rate, options) {}
};

using LambOptions = AdamaxOptions;
// Adam whose step for each variable has the variable's norm (You et al. 2019).
struct Lamb : Optimizer {
  explicit Lamb(LearningRate learning_rate = 0.001, LambOptions options = {});
  explicit Lamb(LambOptions options) : Lamb(options.learning_rate, options) {}
};

struct LionOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.99;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Chen et al. 2023: var -= rate * sign(beta_1 * m + (1 - beta_1) * grad), then
// m = beta_2 * m + (1 - beta_2) * grad.
struct Lion : Optimizer {
  explicit Lion(LearningRate learning_rate = 0.001, LionOptions options = {});
  explicit Lion(LionOptions options) : Lion(options.learning_rate, options) {}
};

struct RMSpropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;
  bool centered = false;  // divides by an estimate of the variance
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Tieleman and Hinton 2012: ms = rho * ms + (1 - rho) * grad^2;
// mom = momentum * mom + rate * grad / sqrt(ms + epsilon); var -= mom.
// Centered: ms - mg^2 in place of ms, mg = rho * mg + (1 - rho) * grad.
struct RMSprop : Optimizer {
  explicit RMSprop(LearningRate learning_rate = 0.001,
                   RMSpropOptions options = {});
  explicit RMSprop(RMSpropOptions options)
      : RMSprop(options.learning_rate, options) {}
};

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Duchi et al. 2011: accum += grad^2;
// var -= rate * grad / (sqrt(accum) + epsilon).
struct Adagrad : Optimizer {
  explicit Adagrad(LearningRate learning_rate = 0.001,
                   AdagradOptions options = {});
  explicit Adagrad(AdagradOptions options)
      : Adagrad(options.learning_rate, options) {}
};

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-7;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Zeiler 2012: accum = rho * accum + (1 - rho) * grad^2;
// delta = grad * sqrt(accum_delta + epsilon) / sqrt(accum + epsilon);
// accum_delta = rho * accum_delta + (1 - rho) * delta^2; var -= rate * delta.
struct Adadelta : Optimizer {
  explicit Adadelta(LearningRate learning_rate = 0.001,
                    AdadeltaOptions options = {});
  explicit Adadelta(AdadeltaOptions options)
      : Adadelta(options.learning_rate, options) {}
};

struct AdafactorOptions {
  LearningRate learning_rate = 0.001;
  double beta_2_decay = -0.8;
  double epsilon_1 = 1e-30;
  double epsilon_2 = 1e-3;
  double clip_threshold = 1;
  // The rate is at most 1 / sqrt(t). As in Keras, this holds even if false.
  bool relative_step = true;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// Shazeer and Stern 2018: second moments of matrices are kept by row and
// column.
struct Adafactor : Optimizer {
  explicit Adafactor(LearningRate learning_rate = 0.001,
                     AdafactorOptions options = {});
  explicit Adafactor(AdafactorOptions options)
      : Adafactor(options.learning_rate, options) {}
};

struct FtrlOptions {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};
// McMahan et al. 2013, "follow the regularized leader", with the shrinkage of
// TensorFlow.
struct Ftrl : Optimizer {
  explicit Ftrl(LearningRate learning_rate = 0.001, FtrlOptions options = {});
  explicit Ftrl(FtrlOptions options) : Ftrl(options.learning_rate, options) {}
};

struct LossScaleOptions {
  double initial_scale = 32768;
  int64_t dynamic_growth_steps = 2000;
  std::string name = {};
};
// For gradients in float16, which range from 6e-8 to 65504: scale_loss()
// multiplies the loss by a scale. If a gradient is not finite, the scale halves
// and the step is skipped; after dynamic_growth_steps good steps it doubles.
struct LossScaleOptimizer : Optimizer {
  explicit LossScaleOptimizer(Optimizer inner_optimizer,
                              LossScaleOptions options = {});
};

}  // namespace optimizers

using optimizers::Adadelta;
using optimizers::Adafactor;
using optimizers::Adagrad;
using optimizers::Adam;
using optimizers::Adamax;
using optimizers::AdamW;
using optimizers::Ftrl;
using optimizers::Lamb;
using optimizers::Lion;
using optimizers::LossScaleOptimizer;
using optimizers::Nadam;
using optimizers::RMSprop;
using optimizers::SGD;

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZERS_H_
