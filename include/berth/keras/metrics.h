// metrics: what training reports (tf.keras.metrics).
//
// A Metric is a value handle. Its counts are in variables: update_state()
// inside a traced step becomes part of its plan, and only result() reads values
// back. Batches may differ in size and be spread over replicas: results are
// those of all samples at once. Updates of one metric must not overlap.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_METRICS_H_
#define BERTH_KERAS_METRICS_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/keras/losses.h"
#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::keras {

struct Description;  // keras/fields.h

// The implementation of a metric. Derive from it for one of your own:
//   class Largest : public keras::MetricBase {
//    public:
//     Largest() : MetricBase("largest") {}
//     void build(const Shape&, const Shape&) override {
//       sum_ = add_variable("sum");
//     }
//     void update_state(const Tensor&, const Tensor& y_pred,
//                       const Tensor&) override {
//       sum_.assign_add(math::reduce_max(y_pred));
//     }
//     Tensor result() override { return sum_.value(); }
//    private:
//     Variable sum_;
//   };
//   auto metric = keras::make_metric<Largest>();
class MetricBase {
 public:
  explicit MetricBase(std::string name);
  virtual ~MetricBase();
  MetricBase(const MetricBase&) = delete;
  MetricBase& operator=(const MetricBase&) = delete;

  // Makes the variables with add_variable(); called once, before the first
  // update, outside any trace. Dimensions may be unknown (-1).
  virtual void build(const Shape& y_true, const Shape& y_pred) = 0;
  // False: build() makes the same variables for all shapes, so that they can be
  // made before there is data.
  virtual bool needs_shapes() const { return false; }
  // Adds a batch, with assign_add(): the counts of replicas are summed.
  // sample_weight is an empty Tensor, or has the shape of the values or its
  // first axes. The default throws errors::InvalidArgument.
  virtual void update_state(const Tensor& y_true, const Tensor& y_pred,
                            const Tensor& sample_weight);
  // Adds a batch to a metric of values, such as Mean.
  virtual void update_values(const Tensor& values, const Tensor& sample_weight);
  // A scalar, or one value per class or output.
  virtual Tensor result() = 0;

  const std::string& name() const { return name_; }
  const std::vector<Variable>& variables() const { return variables_; }
  // Calls build() if it was not called yet and is possible.
  void make(const Shape* y_true, const Shape* y_pred);
  bool built() const { return built_; }
  // How it was made, for configs; null: there is no get_config().
  std::shared_ptr<const Description> description;

 protected:
  // Makes a float32 variable "metric/name" of zeros; in build() only.
  Variable add_variable(const std::string& name, const Shape& shape = {});

 private:
  const std::string name_;
  std::mutex mutex_;
  bool built_ = false;
  std::vector<Variable> variables_;
};

// For update_state(values, {.sample_weight = w}).
struct MetricWeights {
  Tensor sample_weight;
};

class Metric {
 public:
  // One value per sample.
  using Fn = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

  // Finds one by Keras' name: "mse", "precision", "auc",
  // "top_k_categorical_accuracy", ... (the functions below in snake case, with
  // their defaults), or accuracy (acc), which is binary for y_pred [n, 1],
  // sparse for labels of one axis less, else categorical. Throws
  // errors::InvalidArgument for another name.
  Metric(const char* name);         // NOLINT: {.metrics = {"accuracy"}}
  Metric(const std::string& name);  // NOLINT
  // The mean of fn's values; without fn, of the values themselves.
  Metric(std::string name, Fn fn,
         std::shared_ptr<const Description> description = nullptr);
  explicit Metric(std::shared_ptr<MetricBase> base);

  // Adds one batch; in strategy.run() those of all replicas. sample_weight has
  // the shape of the targets or its first axes, such as [n]. Means omit what
  // the mask of y_pred omits.
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = {}) const;
  void update_state(const Tensor& values) const;
  void update_state(const Tensor& values, const MetricWeights& weights) const;
  // The result so far; 0 if there are no samples. Reads it back. For several
  // values, as F1Score's without average, their mean.
  double result() const;
  // The result so far, with all values.
  Tensor result_tensor() const;
  void reset_state() const;

  const std::string& name() const;
  // Its counts; empty as long as their shape depends on data not seen yet.
  std::vector<Variable> variables() const;
  const std::shared_ptr<MetricBase>& base() const { return base_; }
  // How it was made, for configs; null: from a function.
  const std::shared_ptr<const Description>& description() const;
  // For means. Throw errors::FailedPrecondition for other metrics.
  Variable total() const;
  Variable count() const;

 private:
  std::shared_ptr<MetricBase> base_;
};

template <class T, class... Args>
Metric make_metric(Args&&... args) {
  return Metric(std::make_shared<T>(std::forward<Args>(args)...));
}

namespace metrics {

struct MetricOptions {
  std::string name = {};  // Keras' name if empty
};

// Mean and sum of values: update_state(values). MeanTensor: the mean of each
// element of values of one shape.
Metric Mean(MetricOptions options = {});
Metric Sum(MetricOptions options = {});
Metric MeanTensor(MetricOptions options = {});

// Share of elements equal to the target.
Metric Accuracy(MetricOptions options = {});
struct BinaryAccuracyOptions {
  double threshold = 0.5;
  std::string name = {};
};
// Share of elements on the right side of the threshold.
Metric BinaryAccuracy(BinaryAccuracyOptions options = {});
// Share of samples whose largest y_pred is at the true class, from one-hot
// labels [n, c] or numbers [n].
Metric CategoricalAccuracy(MetricOptions options = {});
Metric SparseCategoricalAccuracy(MetricOptions options = {});
struct TopKOptions {
  int64_t k = 5;
  std::string name = {};
};
// Share of samples with the y_pred of the true class among the k largest.
Metric TopKCategoricalAccuracy(TopKOptions options = {});
Metric SparseTopKCategoricalAccuracy(TopKOptions options = {});

// Means of the losses with these names (losses.h).
Metric MeanSquaredError(MetricOptions options = {});
Metric MeanAbsoluteError(MetricOptions options = {});
Metric MeanAbsolutePercentageError(MetricOptions options = {});
Metric MeanSquaredLogarithmicError(MetricOptions options = {});
Metric LogCoshError(MetricOptions options = {});
Metric Poisson(MetricOptions options = {});
Metric KLDivergence(MetricOptions options = {});
Metric Hinge(MetricOptions options = {});
Metric SquaredHinge(MetricOptions options = {});
Metric CategoricalHinge(MetricOptions options = {});
struct CrossentropyMetricOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  std::string name = {};
};
Metric BinaryCrossentropy(CrossentropyMetricOptions options = {});
Metric CategoricalCrossentropy(CrossentropyMetricOptions options = {});
Metric SparseCategoricalCrossentropy(CrossentropyMetricOptions options = {});
struct AxisOptions {
  int64_t axis = -1;
  std::string name = {};
};
// Mean cosine of the angle between y_true and y_pred along `axis`; Pearson's
// and Lin's correlation along it.
Metric CosineSimilarity(AxisOptions options = {});
Metric PearsonCorrelation(AxisOptions options = {});
Metric ConcordanceCorrelation(AxisOptions options = {});
Metric RootMeanSquaredError(MetricOptions options = {});

struct R2ScoreOptions {
  // Over outputs: "uniform_average", "variance_weighted_average" or "", all.
  std::string class_aggregation = "uniform_average";
  int64_t num_regressors = 0;  // above 0: the adjusted score
  std::string name = {};
};
// 1 - squared errors / squared distances from the mean, of [n, outputs].
Metric R2Score(R2ScoreOptions options = {});

// For labels 0 and 1 and predicted probabilities: those above a threshold count
// as positive. Several thresholds give a value each.
struct ConfusionOptions {
  std::vector<double> thresholds = {0.5};
  std::string name = {};
};
Metric TruePositives(ConfusionOptions options = {});
Metric TrueNegatives(ConfusionOptions options = {});
Metric FalsePositives(ConfusionOptions options = {});
Metric FalseNegatives(ConfusionOptions options = {});

struct PrecisionOptions {
  std::vector<double> thresholds = {};   // 0.5, or with top_k none
  std::optional<int64_t> top_k = {};     // only the k largest are positive
  std::optional<int64_t> class_id = {};  // only this class, of the last axis
  std::string name = {};
};
// True positives as a share of all predicted ones; of all labelled ones.
Metric Precision(PrecisionOptions options = {});
Metric Recall(PrecisionOptions options = {});

struct AtValueOptions {
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = {};
  std::string name = {};
};
// The best value of the first where the second is at least `value`.
Metric SensitivityAtSpecificity(double value, AtValueOptions options = {});
Metric SpecificityAtSensitivity(double value, AtValueOptions options = {});
Metric PrecisionAtRecall(double value, AtValueOptions options = {});
Metric RecallAtPrecision(double value, AtValueOptions options = {});

struct AUCOptions {
  int64_t num_thresholds = 200;
  std::string curve = "ROC";                       // or "PR", "PRGAIN"
  std::string summation_method = "interpolation";  // "minoring", "majoring"
  std::vector<double> thresholds = {};  // between 0 and 1, instead of a number
  bool multi_label = false;             // the mean of the areas of each label
  std::vector<double> label_weights = {};
  bool from_logits = false;
  std::string name = {};
};
// Area under a curve, sampled at the thresholds.
Metric AUC(AUCOptions options = {});

struct FBetaScoreOptions {
  std::string average = {};  // "micro", "macro", "weighted"; "": per class
  double beta = 1;
  std::optional<double> threshold = {};  // otherwise the largest is positive
  std::string name = {};
};
struct F1ScoreOptions {
  std::string average = {};
  std::optional<double> threshold = {};
  std::string name = {};
};
// Harmonic mean of precision and recall, with recall weighted beta times, for
// [n, classes].
Metric FBetaScore(FBetaScoreOptions options = {});
Metric F1Score(F1ScoreOptions options = {});

struct IoUOptions {
  std::vector<int64_t> target_class_ids = {};
  std::optional<int64_t> ignore_class = {};
  bool sparse_y_true = true;  // class numbers, otherwise one-hot along axis
  bool sparse_y_pred = true;
  int64_t axis = -1;
  std::string name = {};
};
struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;
  std::string name = {};
};
// Intersection over union of the elements of a class in y_true and in y_pred:
// the mean over the classes that occurred, of target_class_ids or all.
Metric IoU(int64_t num_classes, IoUOptions options);
Metric MeanIoU(int64_t num_classes, IoUOptions options = {});
Metric OneHotIoU(int64_t num_classes, IoUOptions options);
Metric OneHotMeanIoU(int64_t num_classes, IoUOptions options = {});
Metric BinaryIoU(BinaryIoUOptions options = {});

// How often class i was predicted as j: [classes, classes]. Takes class
// numbers, or y_pred [n, classes], whose largest entry counts.
Metric ConfusionMatrix(int64_t num_classes, MetricOptions options = {});

// One value per sample: those of the metrics, and of losses (losses.h).
Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred,
                       double threshold = 0.5);
Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);
Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);
Tensor top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred,
                                  int64_t k = 5);
Tensor sparse_top_k_categorical_accuracy(const Tensor& y_true,
                                         const Tensor& y_pred, int64_t k = 5);
Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred,
                           int64_t axis = -1);
Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred,
                               int64_t axis = -1);
using losses::binary_crossentropy;
using losses::binary_focal_crossentropy;
using losses::categorical_crossentropy;
using losses::categorical_focal_crossentropy;
using losses::categorical_hinge;
using losses::hinge;
using losses::huber;
using losses::kl_divergence;
using losses::log_cosh;
using losses::mean_absolute_error;
using losses::mean_absolute_percentage_error;
using losses::mean_squared_error;
using losses::mean_squared_logarithmic_error;
using losses::poisson;
using losses::sparse_categorical_crossentropy;
using losses::squared_hinge;

}  // namespace metrics
}  // namespace berth::keras

#endif  // BERTH_KERAS_METRICS_H_
