// losses: what training minimises (tf.keras.losses).
//
// A Loss is a value handle: a name, a function that gives one value per sample,
// and how these are reduced. Works eagerly, under tapes and in traces. Throw
// errors::InvalidArgument for shapes or options that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_LOSSES_H_
#define BERTH_KERAS_LOSSES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras {

// "sum_over_batch_size" (mean of all values), "sum" or "none". In
// strategy.run() the mean divides by the number of values of all replicas, so
// that the losses of replicas add up to it.
struct LossOptions {
  std::string reduction = "sum_over_batch_size";
};

struct Description;  // keras/fields.h

class Loss {
 public:
  using Fn = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

  Loss() = default;  // none
  // Finds one by Keras' name ("mse", "mean_squared_error", "huber", ...: the
  // functions below with their defaults). Throws errors::InvalidArgument, which
  // lists the names, for another one.
  Loss(const char* name);         // NOLINT: {.loss = "mse"}
  Loss(const std::string& name);  // NOLINT
  // One of your own: fn(y_true, y_pred) -> values. Throws
  // errors::InvalidArgument for an unknown reduction.
  Loss(std::string name, Fn fn, const LossOptions& options = {},
       std::shared_ptr<const Description> description = nullptr);

  // The values reduced: a scalar, or, for "none", one per sample. Values masked
  // out by the mask of y_pred (recurrent_layers.h) count as 0, and the mean is
  // that of the others.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    Site site = Site::here()) const;
  // The values times weights before they are reduced. Weights have the shape
  // of the values or its first axes, such as [batch]; the mean still divides
  // by the number of values.
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight,
                    Site site = Site::here()) const;
  // One value per sample.
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return fn_(y_true, y_pred);
  }
  const std::string& name() const { return name_; }
  const std::string& reduction() const { return reduction_; }
  bool defined() const { return static_cast<bool>(fn_); }
  // How it was made, for configs; null: from a function.
  const std::shared_ptr<const Description>& description() const {
    return description_;
  }

 private:
  Tensor reduced(const Tensor& values, Site site) const;

  std::string name_;
  Fn fn_;
  std::string reduction_;
  std::shared_ptr<const Description> description_;
};

namespace losses {

// The mean over the last axis of differences: (y_true - y_pred)^2; the
// absolute value; that in percent of y_true; the squared difference of
// log(1 + y).
Loss MeanSquaredError(const LossOptions& options = {});
Loss MeanAbsoluteError(const LossOptions& options = {});
Loss MeanAbsolutePercentageError(const LossOptions& options = {});
Loss MeanSquaredLogarithmicError(const LossOptions& options = {});

struct HuberOptions {
  double delta = 1;  // where the parabola becomes a line
  std::string reduction = "sum_over_batch_size";
};
Loss Huber(const HuberOptions& options = {});
// log(cosh(y_pred - y_true)).
Loss LogCosh(const LossOptions& options = {});

struct CrossentropyOptions {
  bool from_logits = false;  // y_pred are logits, not probabilities
  // Share of the labels' probability that is spread over all classes.
  double label_smoothing = 0;
  std::string reduction = "sum_over_batch_size";
};
// -(y_true log(y_pred) + (1 - y_true) log(1 - y_pred)), the mean over the
// last axis.
Loss BinaryCrossentropy(const CrossentropyOptions& options = {});
// -sum(y_true log(y_pred)) over the last axis; y_true are probabilities.
Loss CategoricalCrossentropy(const CrossentropyOptions& options = {});
// CategoricalCrossentropy of labels [n] or [n, 1], the true classes of y_pred
// [n, c]; without smoothing.
Loss SparseCategoricalCrossentropy(const CrossentropyOptions& options = {});

// max(1 - y_true y_pred, 0), for y_true of -1 and 1 (0 and 1 become these);
// its square; and the margin of the right class over the best wrong one.
Loss Hinge(const LossOptions& options = {});
Loss SquaredHinge(const LossOptions& options = {});
Loss CategoricalHinge(const LossOptions& options = {});

// sum(y_true log(y_true / y_pred)) over the last axis.
Loss KLDivergence(const LossOptions& options = {});
// mean(y_pred - y_true log(y_pred)) over the last axis.
Loss Poisson(const LossOptions& options = {});
// Minus the cosine of the angle between y_true and y_pred along `axis`.
struct CosineOptions {
  int64_t axis = -1;
  std::string reduction = "sum_over_batch_size";
};
Loss CosineSimilarity(const CosineOptions& options = {});

struct BinaryFocalOptions {
  bool apply_class_balancing = false;  // weighs by alpha and 1 - alpha
  double alpha = 0.25;
  double gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  std::string reduction = "sum_over_batch_size";
};
struct CategoricalFocalOptions {
  double alpha = 0.25;
  double gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  std::string reduction = "sum_over_batch_size";
};
// Crossentropies times (1 - the probability of the truth)^gamma: easy examples
// count less (Lin et al. 2018).
Loss BinaryFocalCrossentropy(const BinaryFocalOptions& options = {});
Loss CategoricalFocalCrossentropy(const CategoricalFocalOptions& options = {});
// (1 - p^q) / q, where p is the probability of the true class, for labels [n]
// and y_pred [n, c]; q in (0, 1) (Zhang and Sabuncu 2018).
Loss CategoricalGeneralizedCrossEntropy(double q = 0.5,
                                        const LossOptions& options = {});

struct DiceOptions {
  std::vector<int64_t> axis = {};  // that one value covers; none: all
  std::string reduction = "sum_over_batch_size";
};
struct TverskyOptions {
  double alpha = 0.5;  // weight of true elements that are not predicted
  double beta = 0.5;   // weight of predicted elements that are not true
  std::vector<int64_t> axis = {};
  std::string reduction = "sum_over_batch_size";
};
// 1 - 2 |both| / (|true| + |predicted|), and its form with two weights.
Loss Dice(const DiceOptions& options = {});
Loss Tversky(const TverskyOptions& options = {});

struct CircleOptions {
  double gamma = 80;
  double margin = 0.4;
  bool remove_diagonal = true;  // an example is not its own neighbour
  std::string reduction = "sum_over_batch_size";
};
// For embeddings y_pred [n, d] of length 1 and labels [n]: pulls embeddings of
// one label together, others apart (Sun et al. 2020). The mean is that of
// examples whose loss is not 0.
Loss Circle(const CircleOptions& options = {});

// The values of the losses above, one per sample.
Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
Tensor mean_absolute_percentage_error(const Tensor& y_true,
                                      const Tensor& y_pred);
Tensor mean_squared_logarithmic_error(const Tensor& y_true,
                                      const Tensor& y_pred);
Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);
Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);
Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);
Tensor poisson(const Tensor& y_true, const Tensor& y_pred);
Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta = 1);
Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred,
                         int64_t axis = -1);
Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                           const CrossentropyOptions& options = {});
Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                const CrossentropyOptions& options = {});
Tensor sparse_categorical_crossentropy(const Tensor& y_true,
                                       const Tensor& y_pred,
                                       const CrossentropyOptions& options = {});
Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 const BinaryFocalOptions& options = {});
Tensor categorical_focal_crossentropy(
    const Tensor& y_true, const Tensor& y_pred,
    const CategoricalFocalOptions& options = {});
Tensor categorical_generalized_cross_entropy(const Tensor& y_true,
                                             const Tensor& y_pred, double q);
Tensor dice(const Tensor& y_true, const Tensor& y_pred,
            const DiceOptions& options = {});
Tensor tversky(const Tensor& y_true, const Tensor& y_pred,
               const TverskyOptions& options = {});
Tensor circle(const Tensor& y_true, const Tensor& y_pred,
              const CircleOptions& options = {});

}  // namespace losses
}  // namespace berth::keras

#endif  // BERTH_KERAS_LOSSES_H_
