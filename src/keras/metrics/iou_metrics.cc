// Metrics of pairs of classes: intersection over union, confusion matrix.

#include <fmt/format.h>

#include <numeric>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/metrics/metric_names.h"
#include "keras/metrics/metric_util.h"
#include "op/dispatcher.h"

namespace berth::keras {

void metric_fields(Fields& f, metrics::BinaryIoUOptions& o) {
  if (f.reading()) f.get("dtype");  // Keras counts in int32
  f("target_class_ids", o.target_class_ids);
  f("threshold", o.threshold);
}

namespace {

// Counts of pairs of classes.
class MatrixMetric : public MetricBase {
 public:
  MatrixMetric(std::string name, int64_t classes)
      : MetricBase(std::move(name)), classes_(classes) {
    if (classes_ > 1 && classes_ <= (1 << 14)) return;
    throw errors::InvalidArgument(
        fmt::format("metric \"{}\": num_classes is {}; expected 2 to 16384",
                    this->name(), classes_));
  }
  void build(const Shape&, const Shape&) override {
    matrix_ = add_variable("total_confusion_matrix", {classes_, classes_});
  }
  Tensor result() override {
    return constant(values_of(matrix_), {classes_, classes_});
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    const bool scores = y_pred.rank() > 1 &&
                        y_pred.shape()[y_pred.rank() - 1] == classes_ &&
                        y_true.rank() + 1 == y_pred.rank();
    add_pairs(y_true, scores ? math::argmax(y_pred, -1, s) : y_pred, weight,
              {});
  }

 protected:
  // Counts pairs of classes by number; `ignored` counts nowhere.
  void add_pairs(const Tensor& y_true, const Tensor& y_pred,
                 const Tensor& weight, std::optional<int64_t> ignored) {
    const Site s = t_state.site;
    const FlatBatch b =
        flat_batch(name(), metric_floats(y_true), y_pred, weight);
    Tensor w = b.weight;
    if (ignored) {
      const auto is = static_cast<double>(*ignored);
      w = math::multiply(w, metric_floats(math::abs(b.y_true - is, s) > 0.5),
                         s);
    }
    const auto hot = [&](const Tensor& t) {
      return one_hot(math::cast(t, int32, s), classes_, {}, s);
    };
    const Tensor rows = math::multiply(hot(b.y_true), expand_dims(w, 1, s), s);
    matrix_.assign_add(matmul(rows, hot(b.y_pred), {.transpose_a = true}, s),
                       s);
  }

  const int64_t classes_;
  Variable matrix_;
};

class IoUMetric final : public MatrixMetric {
 public:
  IoUMetric(std::string name, int64_t classes, metrics::IoUOptions o,
            std::optional<double> threshold = {})
      : MatrixMetric(std::move(name), classes),
        o_(std::move(o)),
        threshold_(threshold) {
    for (int64_t id : o_.target_class_ids) {
      if (id >= 0 && id < classes) continue;
      throw errors::InvalidArgument(
          fmt::format("metric \"{}\": a target class is {}; expected 0 to {}",
                      this->name(), id, classes - 1));
    }
    if (o_.target_class_ids.empty()) {
      o_.target_class_ids.resize(static_cast<size_t>(classes));
      std::iota(o_.target_class_ids.begin(), o_.target_class_ids.end(), 0);
    }
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    Tensor p = y_pred, y = y_true;
    if (threshold_) {
      p = metric_floats(math::greater_equal(
          metric_floats(p), constant(static_cast<float>(*threshold_)), s));
    }
    if (!o_.sparse_y_pred) p = math::argmax(p, o_.axis, s);
    if (!o_.sparse_y_true) y = math::argmax(y, o_.axis, s);
    add_pairs(y, p, weight, o_.ignore_class);
  }
  Tensor result() override {
    const std::vector<double> m = values_of(matrix_);
    const auto c = static_cast<size_t>(classes_);
    double sum = 0, seen = 0;
    for (int64_t id : o_.target_class_ids) {
      const auto k = static_cast<size_t>(id);
      double any = -m[k * c + k];
      for (size_t i = 0; i < c; ++i) any += m[k * c + i] + m[i * c + k];
      if (any <= 1e-9) continue;
      seen += 1;
      sum += m[k * c + k] / any;
    }
    return constant(quotient(sum, seen));
  }

 private:
  metrics::IoUOptions o_;
  const std::optional<double> threshold_;
};

// Fields of the IoU family; which of them a class has.
enum class IoUKind { kIoU, kMean, kOneHot, kOneHotMean };
template <Metric (*kMake)(int64_t, metrics::IoUOptions), IoUKind kKind>
struct IoUArgs {
  int64_t num_classes = 0;
  metrics::IoUOptions o;
  void fields(Fields& f) {
    constexpr bool kMean =
        kKind == IoUKind::kMean || kKind == IoUKind::kOneHotMean;
    constexpr bool kOneHot =
        kKind == IoUKind::kOneHot || kKind == IoUKind::kOneHotMean;
    f("name", o.name);
    if (f.reading()) f.get("dtype");  // Keras counts in int32
    f.must("num_classes", num_classes);
    if (!kMean) f.must("target_class_ids", o.target_class_ids);
    f("ignore_class", o.ignore_class);
    if (!kOneHot) f("sparse_y_true", o.sparse_y_true);
    f("sparse_y_pred", o.sparse_y_pred);
    f("axis", o.axis);
  }
  Metric make() const { return kMake(num_classes, o); }
};

template <Metric (*kMake)(int64_t, metrics::IoUOptions), IoUKind kKind>
Metric iou_metric(const char* class_name, const char* usual, int64_t classes,
                  const metrics::IoUOptions& given) {
  metrics::IoUOptions o = given;
  const std::string name = metric_name(o.name, usual);
  if (kKind == IoUKind::kOneHot || kKind == IoUKind::kOneHotMean) {
    o.sparse_y_true = false;
  }
  if ((kKind == IoUKind::kIoU || kKind == IoUKind::kOneHot) &&
      o.target_class_ids.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "metric \"{}\": there are no target_class_ids; expected classes, or "
        "MeanIoU for all",
        name));
  }
  auto base = std::make_shared<IoUMetric>(name, classes, o);
  base->description =
      description(class_name, IoUArgs<kMake, kKind>{classes, given});
  return Metric(std::move(base));
}

struct ConfusionMatrixArgs {
  int64_t num_classes = 0;
  metrics::MetricOptions o;
  void fields(Fields& f) {
    f("name", o.name);
    f.must("num_classes", num_classes);
  }
  Metric make() const { return metrics::ConfusionMatrix(num_classes, o); }
};

}  // namespace

namespace metrics {

Metric IoU(int64_t num_classes, IoUOptions o) {
  return iou_metric<&IoU, IoUKind::kIoU>("IoU", "io_u", num_classes, o);
}
Metric MeanIoU(int64_t num_classes, IoUOptions o) {
  return iou_metric<&MeanIoU, IoUKind::kMean>("MeanIoU", "mean_io_u",
                                              num_classes, o);
}
Metric OneHotIoU(int64_t num_classes, IoUOptions o) {
  return iou_metric<&OneHotIoU, IoUKind::kOneHot>("OneHotIoU", "one_hot_io_u",
                                                  num_classes, o);
}
Metric OneHotMeanIoU(int64_t num_classes, IoUOptions o) {
  return iou_metric<&OneHotMeanIoU, IoUKind::kOneHotMean>(
      "OneHotMeanIoU", "one_hot_mean_io_u", num_classes, o);
}
Metric BinaryIoU(BinaryIoUOptions o) {
  const IoUOptions all{.target_class_ids = o.target_class_ids};
  return described_metric(
      "BinaryIoU",
      std::make_shared<IoUMetric>(metric_name(o.name, "binary_io_u"), 2, all,
                                  o.threshold),
      o);
}
Metric ConfusionMatrix(int64_t num_classes, MetricOptions o) {
  auto base = std::make_shared<MatrixMetric>(
      metric_name(o.name, "confusion_matrix"), num_classes);
  base->description =
      description("ConfusionMatrix", ConfusionMatrixArgs{num_classes, o});
  return Metric(std::move(base));
}

}  // namespace metrics

void add_iou_metrics_classes(Classes& c) {
  using namespace metrics;
  auto& all = c.metrics;
  all["BinaryIoU"] = &metric_of<BinaryIoUOptions, &BinaryIoU>;
  all["IoU"] = &made_of<Metric, IoUArgs<&IoU, IoUKind::kIoU>>;
  all["MeanIoU"] = &made_of<Metric, IoUArgs<&MeanIoU, IoUKind::kMean>>;
  all["OneHotIoU"] = &made_of<Metric, IoUArgs<&OneHotIoU, IoUKind::kOneHot>>;
  all["OneHotMeanIoU"] =
      &made_of<Metric, IoUArgs<&OneHotMeanIoU, IoUKind::kOneHotMean>>;
  all["ConfusionMatrix"] = &made_of<Metric, ConfusionMatrixArgs>;
}

}  // namespace berth::keras
