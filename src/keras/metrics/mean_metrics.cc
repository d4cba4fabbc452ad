// Metrics that are means of one value per sample.

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_shapes.h"
#include "keras/metrics/metric_names.h"
#include "keras/metrics/metric_util.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

void metric_fields(Fields&, metrics::MetricOptions&) {}
void metric_fields(Fields& f, metrics::BinaryAccuracyOptions& o) {
  f("threshold", o.threshold);
}
void metric_fields(Fields& f, metrics::TopKOptions& o) { f("k", o.k); }
void metric_fields(Fields& f, metrics::CrossentropyMetricOptions& o) {
  f("from_logits", o.from_logits);
  f("label_smoothing", o.label_smoothing);
  if (f.reading()) f.fixed("axis", -1);
}
void metric_fields(Fields& f, metrics::AxisOptions& o) { f("axis", o.axis); }

std::string metric_name(const std::string& given, const char* usual) {
  return given.empty() ? usual : given;
}

namespace {

Tensor sparse_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Site site = t_state.site;
  const Tensor y = class_labels("accuracy", y_true, y_pred);
  const Tensor best = math::argmax(y_pred, -1, site);
  const Tensor labels = y.dtype() == int64 ? y : math::cast(y, int64, site);
  return metric_floats(math::equal(labels, best, site));
}

Tensor one_hot_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Site site = t_state.site;
  const Tensor y = like_prediction("accuracy", y_true, y_pred);
  return metric_floats(math::equal(math::argmax(y, -1, site),
                                   math::argmax(y_pred, -1, site), site));
}

Tensor threshold_accuracy(const Tensor& y_true, const Tensor& y_pred,
                          double threshold) {
  const Tensor y = like_prediction("accuracy", y_true, y_pred);
  return metric_floats(math::equal(y > 0.5, y_pred > threshold, t_state.site));
}

Tensor plain_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor y = like_prediction("accuracy", y_true, y_pred);
  return metric_floats(math::equal(y, y_pred, t_state.site));
}

// Keras' choice for "accuracy".
Tensor chosen_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const int rank = y_pred.rank();
  if (rank == 0 || y_pred.shape()[rank - 1] == 1) {
    return threshold_accuracy(y_true, y_pred, 0.5);
  }
  const int r = y_true.rank();
  const bool labels = r + 1 == rank || (r > 0 && y_true.shape()[r - 1] == 1);
  return labels ? sparse_accuracy(y_true, y_pred)
                : one_hot_accuracy(y_true, y_pred);
}

Tensor top_k_accuracy(const Tensor& labels, const Tensor& y_pred, int64_t k) {
  const Site site = t_state.site;
  const int rank = y_pred.rank();
  if (rank == 2) return metric_floats(in_top_k(labels, y_pred, k, site));
  const Tensor hits =
      in_top_k(reshape(labels, {-1}, site),
               reshape(y_pred, {-1, y_pred.shape()[rank - 1]}, site), k, site);
  return metric_floats(hits);
}
Tensor sparse_top_k(const Tensor& y_true, const Tensor& y_pred, int64_t k) {
  return top_k_accuracy(class_labels("top_k_accuracy", y_true, y_pred), y_pred,
                        k);
}
Tensor categorical_top_k(const Tensor& y_true, const Tensor& y_pred,
                         int64_t k) {
  const Tensor y = like_prediction("top_k_accuracy", y_true, y_pred);
  return top_k_accuracy(math::argmax(y, -1, t_state.site), y_pred, k);
}

Tensor mean_along(const Tensor& x, int64_t axis, bool keep) {
  return math::reduce_mean(
      x, {.axis = std::vector<int64_t>{axis}, .keepdims = keep}, t_state.site);
}

Tensor pearson(const Tensor& y_true, const Tensor& y_pred, int64_t axis) {
  const Tensor y = like_prediction("pearson_correlation", y_true, y_pred);
  const auto norm = [&](const Tensor& t) {
    const Tensor centred = t - mean_along(t, axis, true);
    return centred / math::sqrt(mean_along(math::square(centred), axis, true));
  };
  return mean_along(norm(y) * norm(y_pred), axis, false);
}

Tensor concordance(const Tensor& y_true, const Tensor& y_pred, int64_t axis) {
  const Tensor y = like_prediction("concordance_correlation", y_true, y_pred);
  const Tensor a = mean_along(y, axis, true),
               b = mean_along(y_pred, axis, true);
  const Tensor da = y - a, db = y_pred - b;
  const Tensor norm = mean_along(math::square(da), axis, true) +
                      mean_along(math::square(db), axis, true) +
                      math::square(a - b);
  return mean_along(da * db * 2.0 / (norm + 1e-7), axis, false);
}

// The mean of a loss.
Metric::Fn values_of_loss(Loss loss) {
  return [loss = std::move(loss)](const Tensor& y_true, const Tensor& y_pred) {
    return loss.per_sample(y_true, y_pred);
  };
}

// What stands for one of several.
struct AccuracyByName {
  void fields(Fields&) {}
  Metric make() const { return "accuracy"; }
};

// RootMeanSquaredError: the root of a mean.
class RootMean final : public MetricBase {
 public:
  explicit RootMean(std::string name) : MetricBase(std::move(name)) {}
  void build(const Shape&, const Shape&) override {
    total_ = add_variable("total");
    count_ = add_variable("count");
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    const FlatBatch b = flat_batch(name(), y_true, y_pred, weight);
    const Tensor e = math::squared_difference(b.y_true, b.y_pred, s);
    total_.assign_add(math::reduce_sum(math::multiply(e, b.weight, s), {}, s));
    count_.assign_add(math::reduce_sum(b.weight, {}, s), s);
  }
  Tensor result() override {
    return constant(
        std::sqrt(quotient(values_of(total_)[0], values_of(count_)[0])));
  }

 private:
  Variable total_, count_;
};

class SumMetric final : public MetricBase {
 public:
  explicit SumMetric(std::string name) : MetricBase(std::move(name)) {}
  void build(const Shape&, const Shape&) override {
    total_ = add_variable("total");
  }
  void update_values(const Tensor& values, const Tensor& weight) override {
    const Site s = t_state.site;
    Tensor v = metric_floats(values);
    if (weight.defined()) {
      v = math::multiply(v, spread_weights(name(), weight, v), s);
    }
    total_.assign_add(v.rank() == 0 ? v : math::reduce_sum(v, {}, s), s);
  }
  Tensor result() override { return constant(values_of(total_)[0]); }

 private:
  Variable total_;
};

class MeanTensorMetric final : public MetricBase {
 public:
  explicit MeanTensorMetric(std::string name) : MetricBase(std::move(name)) {}
  bool needs_shapes() const override { return true; }
  void build(const Shape&, const Shape& values) override {
    total_ = add_variable("total", values);
    count_ = add_variable("count", values);
  }
  void update_values(const Tensor& values, const Tensor& weight) override {
    const Site s = t_state.site;
    const Tensor v = metric_floats(values);
    if (!v.shape().compatible_with(total_.shape())) {
      fail_metric(name(), fmt::format("values are {}, the first were {}; "
                                      "expected one shape",
                                      v.shape().str(), total_.shape().str()));
    }
    const Tensor w =
        weight.defined() ? spread_weights(name(), weight, v) : ones_like(v, s);
    total_.assign_add(math::multiply(v, w, s), s);
    count_.assign_add(w, s);
  }
  Tensor result() override {
    std::vector<double> t = values_of(total_);
    const std::vector<double> n = values_of(count_);
    for (size_t i = 0; i < t.size(); ++i) t[i] = quotient(t[i], n[i]);
    return constant(t, total_.shape());
  }

 private:
  Variable total_, count_;
};

template <class Options>
std::shared_ptr<const Description> told(const char* class_name, Options o) {
  return description(class_name, MetricArgs<Options>{std::move(o)});
}

}  // namespace

Metric chosen_accuracy_metric(const std::string& name) {
  return {name, &chosen_accuracy, description("accuracy", AccuracyByName())};
}

namespace metrics {

Tensor binary_accuracy(const Tensor& y, const Tensor& p, double threshold) {
  return threshold_accuracy(y, p, threshold);
}
Tensor categorical_accuracy(const Tensor& y, const Tensor& p) {
  return one_hot_accuracy(y, p);
}
Tensor sparse_categorical_accuracy(const Tensor& y, const Tensor& p) {
  return sparse_accuracy(y, p);
}
Tensor top_k_categorical_accuracy(const Tensor& y, const Tensor& p, int64_t k) {
  return categorical_top_k(y, p, k);
}
Tensor sparse_top_k_categorical_accuracy(const Tensor& y, const Tensor& p,
                                         int64_t k) {
  return sparse_top_k(y, p, k);
}
Tensor pearson_correlation(const Tensor& y, const Tensor& p, int64_t axis) {
  return pearson(y, p, axis);
}
Tensor concordance_correlation(const Tensor& y, const Tensor& p, int64_t axis) {
  return concordance(y, p, axis);
}

Metric Mean(MetricOptions o) {
  return {metric_name(o.name, "mean"), nullptr, told("Mean", o)};
}
Metric Sum(MetricOptions o) {
  return described_metric(
      "Sum", std::make_shared<SumMetric>(metric_name(o.name, "sum")), o);
}
Metric MeanTensor(MetricOptions o) {
  return described_metric(
      "MeanTensor",
      std::make_shared<MeanTensorMetric>(metric_name(o.name, "mean_tensor")),
      o);
}
Metric RootMeanSquaredError(MetricOptions o) {
  return described_metric("RootMeanSquaredError",
                          std::make_shared<RootMean>(
                              metric_name(o.name, "root_mean_squared_error")),
                          o);
}
Metric Accuracy(MetricOptions o) {
  return {metric_name(o.name, "accuracy"), &plain_accuracy,
          told("Accuracy", o)};
}
Metric SparseCategoricalAccuracy(MetricOptions o) {
  return {metric_name(o.name, "sparse_categorical_accuracy"), &sparse_accuracy,
          told("SparseCategoricalAccuracy", o)};
}
Metric CategoricalAccuracy(MetricOptions o) {
  return {metric_name(o.name, "categorical_accuracy"), &one_hot_accuracy,
          told("CategoricalAccuracy", o)};
}
Metric BinaryAccuracy(BinaryAccuracyOptions o) {
  if (!(o.threshold > 0 && o.threshold < 1)) {
    throw errors::InvalidArgument(fmt::format(
        "BinaryAccuracy: threshold is {}; expected 0 to 1", o.threshold));
  }
  return {metric_name(o.name, "binary_accuracy"),
          [t = o.threshold](const Tensor& y, const Tensor& p) {
            return threshold_accuracy(y, p, t);
          },
          told("BinaryAccuracy", o)};
}

namespace {

void check_k(const char* what, int64_t k) {
  if (k > 0) return;
  throw errors::InvalidArgument(
      fmt::format("{}: k is {}; expected at least 1", what, k));
}

}  // namespace

Metric TopKCategoricalAccuracy(TopKOptions o) {
  check_k("TopKCategoricalAccuracy", o.k);
  return {metric_name(o.name, "top_k_categorical_accuracy"),
          [k = o.k](const Tensor& y, const Tensor& p) {
            return categorical_top_k(y, p, k);
          },
          told("TopKCategoricalAccuracy", o)};
}
Metric SparseTopKCategoricalAccuracy(TopKOptions o) {
  check_k("SparseTopKCategoricalAccuracy", o.k);
  return {metric_name(o.name, "sparse_top_k_categorical_accuracy"),
          [k = o.k](const Tensor& y, const Tensor& p) {
            return sparse_top_k(y, p, k);
          },
          told("SparseTopKCategoricalAccuracy", o)};
}

#define LOSS_METRIC(NAME, LOSS, USUAL)                          \
  Metric NAME(MetricOptions o) {                                \
    return {metric_name(o.name, USUAL), values_of_loss(LOSS()), \
            told(#NAME, o)};                                    \
  }
LOSS_METRIC(MeanSquaredError, losses::MeanSquaredError, "mean_squared_error")
LOSS_METRIC(MeanAbsoluteError, losses::MeanAbsoluteError, "mean_absolute_error")
LOSS_METRIC(MeanAbsolutePercentageError, losses::MeanAbsolutePercentageError,
            "mean_absolute_percentage_error")
LOSS_METRIC(MeanSquaredLogarithmicError, losses::MeanSquaredLogarithmicError,
            "mean_squared_logarithmic_error")
LOSS_METRIC(LogCoshError, losses::LogCosh, "logcosh")
LOSS_METRIC(Poisson, losses::Poisson, "poisson")
LOSS_METRIC(KLDivergence, losses::KLDivergence, "kl_divergence")
LOSS_METRIC(Hinge, losses::Hinge, "hinge")
LOSS_METRIC(SquaredHinge, losses::SquaredHinge, "squared_hinge")
LOSS_METRIC(CategoricalHinge, losses::CategoricalHinge, "categorical_hinge")
#undef LOSS_METRIC
#define CROSSENTROPY_METRIC(NAME, USUAL)                                      \
  Metric NAME(CrossentropyMetricOptions o) {                                  \
    return {                                                                  \
        metric_name(o.name, USUAL),                                           \
        values_of_loss(losses::NAME({.from_logits = o.from_logits,            \
                                     .label_smoothing = o.label_smoothing})), \
        told(#NAME, o)};                                                      \
  }
CROSSENTROPY_METRIC(BinaryCrossentropy, "binary_crossentropy")
CROSSENTROPY_METRIC(CategoricalCrossentropy, "categorical_crossentropy")
CROSSENTROPY_METRIC(SparseCategoricalCrossentropy,
                    "sparse_categorical_crossentropy")
#undef CROSSENTROPY_METRIC

Metric CosineSimilarity(AxisOptions o) {
  const Loss loss = losses::CosineSimilarity({.axis = o.axis});
  return {metric_name(o.name, "cosine_similarity"),
          [loss](const Tensor& y, const Tensor& p) {
            return -loss.per_sample(y, p);
          },
          told("CosineSimilarity", o)};
}
Metric PearsonCorrelation(AxisOptions o) {
  return {metric_name(o.name, "pearson_correlation"),
          [axis = o.axis](const Tensor& y, const Tensor& p) {
            return pearson(y, p, axis);
          },
          told("PearsonCorrelation", o)};
}
Metric ConcordanceCorrelation(AxisOptions o) {
  return {metric_name(o.name, "concordance_correlation"),
          [axis = o.axis](const Tensor& y, const Tensor& p) {
            return concordance(y, p, axis);
          },
          told("ConcordanceCorrelation", o)};
}

}  // namespace metrics

void add_mean_metric_classes(Classes& c) {
  using namespace metrics;
  auto& all = c.metrics;
  all["accuracy"] = &made_of<Metric, AccuracyByName>;
#define METRIC_CLASS(NAME, OPTIONS) all[#NAME] = &metric_of<OPTIONS, &NAME>;
  METRIC_CLASS(Mean, MetricOptions)
  METRIC_CLASS(Sum, MetricOptions)
  METRIC_CLASS(MeanTensor, MetricOptions)
  METRIC_CLASS(RootMeanSquaredError, MetricOptions)
  METRIC_CLASS(Accuracy, MetricOptions)
  METRIC_CLASS(SparseCategoricalAccuracy, MetricOptions)
  METRIC_CLASS(CategoricalAccuracy, MetricOptions)
  METRIC_CLASS(BinaryAccuracy, BinaryAccuracyOptions)
  METRIC_CLASS(TopKCategoricalAccuracy, TopKOptions)
  METRIC_CLASS(SparseTopKCategoricalAccuracy, TopKOptions)
  METRIC_CLASS(MeanSquaredError, MetricOptions)
  METRIC_CLASS(MeanAbsoluteError, MetricOptions)
  METRIC_CLASS(MeanAbsolutePercentageError, MetricOptions)
  METRIC_CLASS(MeanSquaredLogarithmicError, MetricOptions)
  METRIC_CLASS(LogCoshError, MetricOptions)
  METRIC_CLASS(Poisson, MetricOptions)
  METRIC_CLASS(KLDivergence, MetricOptions)
  METRIC_CLASS(Hinge, MetricOptions)
  METRIC_CLASS(SquaredHinge, MetricOptions)
  METRIC_CLASS(CategoricalHinge, MetricOptions)
  METRIC_CLASS(BinaryCrossentropy, CrossentropyMetricOptions)
  METRIC_CLASS(CategoricalCrossentropy, CrossentropyMetricOptions)
  METRIC_CLASS(SparseCategoricalCrossentropy, CrossentropyMetricOptions)
  METRIC_CLASS(CosineSimilarity, AxisOptions)
  METRIC_CLASS(PearsonCorrelation, AxisOptions)
  METRIC_CLASS(ConcordanceCorrelation, AxisOptions)
#undef METRIC_CLASS
}

}  // namespace berth::keras
