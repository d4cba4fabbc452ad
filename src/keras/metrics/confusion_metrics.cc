// Metrics of positives and negatives, at thresholds.

#include <fmt/format.h>

#include <algorithm>
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

void metric_fields(Fields& f, metrics::ConfusionOptions& o) {
  f("thresholds", o.thresholds);
}
void metric_fields(Fields& f, metrics::PrecisionOptions& o) {
  f("thresholds", o.thresholds);
  f("top_k", o.top_k);
  f("class_id", o.class_id);
}
void metric_fields(Fields& f, metrics::AUCOptions& o) {
  f("num_thresholds", o.num_thresholds);
  f("curve", o.curve);
  f("summation_method", o.summation_method);
  f("multi_label", o.multi_label);
  f("label_weights", o.label_weights);
  f("from_logits", o.from_logits);
  if (f.reading() || !o.thresholds.empty()) f("thresholds", o.thresholds);
}

namespace {

// Below any prediction.
constexpr double kNoThreshold = -1e10;

void check_thresholds(const std::string& name, const std::vector<double>& t) {
  for (double v : t) {
    if (v >= 0 && v <= 1) continue;
    throw errors::InvalidArgument(fmt::format(
        "metric \"{}\": a threshold is {}; expected 0 to 1", name, v));
  }
  if (t.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "metric \"{}\": there are no thresholds; expected one or more", name));
  }
}

// (i + 1) / (n - 1) between the ends, as Keras has them.
std::vector<double> even_thresholds(int64_t n, double low, double high) {
  std::vector<double> t{low};
  for (int64_t i = 0; i + 2 < n; ++i) {
    t.push_back(static_cast<double>(i + 1) / static_cast<double>(n - 1));
  }
  t.push_back(high);
  return t;
}

// y_pred with all but the k largest of each sample out of reach.
Tensor only_top_k(const Tensor& y_pred, int64_t k) {
  const Site s = t_state.site;
  const int64_t classes = y_pred.shape()[y_pred.rank() - 1];
  const Tensor best = top_k(y_pred, k, false, s).indices;
  const Tensor among = math::reduce_max(one_hot(best, classes, {}, s),
                                        {.axis = std::vector<int64_t>{-2}}, s);
  const Tensor out = math::multiply(ones_like(y_pred, s), constant(-1e10f), s);
  return where(among > 0.5, y_pred, out, s);
}

Tensor class_of_last_axis(const Tensor& x, int64_t id) {
  return gather(x, constant(std::vector<int64_t>{id}, {1}), -1, t_state.site);
}

// Counts at thresholds; what a metric needs is added to its variables. Labels
// apart when there are several.
class ConfusionBase : public MetricBase {
 public:
  ConfusionBase(std::string name, std::vector<double> thresholds)
      : MetricBase(std::move(name)), thresholds_(std::move(thresholds)) {
    // Counts are made in rising order; results are in that of the options.
    order_.resize(thresholds_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return thresholds_[a] < thresholds_[b];
    });
    for (size_t i : order_)
      sorted_.push_back(static_cast<float>(thresholds_[i]));
  }

 protected:
  struct Counts {
    Tensor tp, fp, fn, tn;  // [thresholds] or [thresholds, labels]
  };

  // `labels`: columns of the flat elements.
  Counts count(const FlatBatch& b, int64_t labels = 1) const {
    const Site s = t_state.site;
    const auto t = static_cast<int64_t>(sorted_.size());
    const Tensor yes = math::multiply(b.y_true, b.weight, s);
    const Tensor both =
        stack({yes, math::subtract(b.weight, yes, s)}, 1, s);  // [n, 2]
    // How many thresholds lie below each prediction: its bucket.
    Tensor bucket = searchsorted(constant(sorted_, {t}), b.y_pred, {}, s);
    if (labels > 1)
      bucket = bucket * static_cast<int>(labels) + column(b, labels);
    const Tensor sums =
        reshape(unsorted_segment_sum(both, bucket, (t + 1) * labels, s),
                {t + 1, labels * 2}, s);
    // Positive at threshold i is what lies in a bucket above i.
    std::vector<float> above(static_cast<size_t>(t * (t + 1)), 0);
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t k = i + 1; k <= t; ++k) {
        above[static_cast<size_t>(i * (t + 1) + k)] = 1;
      }
    }
    const Shape shape = labels == 1 ? Shape{t, 2} : Shape{t, labels, 2};
    const Tensor positive =
        reshape(matmul(constant(above, {t, t + 1}), sums, {}, s), shape, s);
    const Tensor all =
        math::reduce_sum(sums, {.axis = std::vector<int64_t>{0}}, s);
    const Tensor every = labels == 1 ? all : reshape(all, {1, labels, 2}, s);
    const Tensor negative = math::subtract(every, positive, s);
    return {part(positive, 0), part(positive, 1), part(negative, 0),
            part(negative, 1)};
  }

  // In the order of the options.
  std::vector<double> ordered(const Variable& v) const {
    const std::vector<double> sorted = values_of(v);
    std::vector<double> list(sorted.size());
    for (size_t i = 0; i < order_.size(); ++i) list[order_[i]] = sorted[i];
    return list;
  }
  Shape counts_shape() const { return {static_cast<int64_t>(sorted_.size())}; }

 private:
  static Tensor part(const Tensor& x, int64_t i) {
    return squeeze(class_of_last_axis(x, i), {-1}, t_state.site);
  }
  // The label that each flat element belongs to.
  static Tensor column(const FlatBatch& b, int64_t labels) {
    const Site s = t_state.site;
    const Tensor rows = reshape(b.y_pred, {-1, labels}, s);
    const Tensor zero = math::cast(zeros_like(rows, s), int32, s);
    const Tensor ids = range(0, labels, 1, int32);
    return reshape(math::add(zero, ids, s), {-1}, s);
  }

  const std::vector<double> thresholds_;
  std::vector<size_t> order_;
  std::vector<float> sorted_;
};

// TruePositives and the like.
class CountMetric final : public ConfusionBase {
 public:
  CountMetric(std::string name, std::vector<double> thresholds,
              Tensor Counts::*what)
      : ConfusionBase(std::move(name), std::move(thresholds)), what_(what) {}
  using Counts = ConfusionBase::Counts;
  void build(const Shape&, const Shape&) override {
    sum_ = add_variable("accumulator", counts_shape());
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& w) override {
    const Counts c = count(flat_batch(name(), y_true, y_pred, w));
    sum_.assign_add(c.*what_, t_state.site);
  }
  Tensor result() override { return tensor_of(ordered(sum_)); }

  static Tensor Counts::*tp() { return &Counts::tp; }
  static Tensor Counts::*tn() { return &Counts::tn; }
  static Tensor Counts::*fp() { return &Counts::fp; }
  static Tensor Counts::*fn() { return &Counts::fn; }

 private:
  Tensor Counts::*const what_;
  Variable sum_;
};

// Precision, or recall.
class PrecisionMetric final : public ConfusionBase {
 public:
  PrecisionMetric(std::string name, bool recall, metrics::PrecisionOptions o)
      : ConfusionBase(std::move(name), usual(o)),
        recall_(recall),
        o_(std::move(o)) {}
  void build(const Shape&, const Shape&) override {
    tp_ = add_variable("true_positives", counts_shape());
    other_ = add_variable(recall_ ? "false_negatives" : "false_positives",
                          counts_shape());
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    Tensor p = metric_floats(y_pred);
    Tensor y = like_prediction(name().c_str(), y_true, p), w = weight;
    if (o_.top_k) {
      if (*o_.top_k > p.shape()[p.rank() - 1] && p.shape()[p.rank() - 1] >= 0) {
        fail_metric(name(), fmt::format("top_k is {}, predictions are {}; "
                                        "expected at most the classes",
                                        *o_.top_k, p.shape().str()));
      }
      p = only_top_k(p, *o_.top_k);
    }
    if (o_.class_id) {
      if (w.defined()) {
        w = class_of_last_axis(spread_weights(name(), w, p), *o_.class_id);
      }
      p = class_of_last_axis(p, *o_.class_id);
      y = class_of_last_axis(y, *o_.class_id);
    }
    const Counts c = count(flat_batch(name(), y, p, w));
    tp_.assign_add(c.tp, s);
    other_.assign_add(recall_ ? c.fn : c.fp, s);
  }
  Tensor result() override {
    std::vector<double> tp = ordered(tp_);
    const std::vector<double> other = ordered(other_);
    for (size_t i = 0; i < tp.size(); ++i) {
      tp[i] = quotient(tp[i], tp[i] + other[i]);
    }
    return tensor_of(tp);
  }

 private:
  static std::vector<double> usual(const metrics::PrecisionOptions& o) {
    if (!o.thresholds.empty()) return o.thresholds;
    return {o.top_k ? kNoThreshold : 0.5};
  }
  const bool recall_;
  const metrics::PrecisionOptions o_;
  Variable tp_, other_;
};

// All four counts, as AUC and the ...At... metrics keep them.
class FourCounts : public ConfusionBase {
 public:
  using ConfusionBase::ConfusionBase;

 protected:
  void make_counts(const Shape& shape) {
    tp_ = add_variable("true_positives", shape);
    fp_ = add_variable("false_positives", shape);
    tn_ = add_variable("true_negatives", shape);
    fn_ = add_variable("false_negatives", shape);
  }
  void add(const Counts& c) {
    const Site s = t_state.site;
    tp_.assign_add(c.tp, s);
    fp_.assign_add(c.fp, s);
    tn_.assign_add(c.tn, s);
    fn_.assign_add(c.fn, s);
  }
  struct Values {
    std::vector<double> tp, fp, tn, fn;  // thresholds in rising order
    double recall(size_t i) const { return quotient(tp[i], tp[i] + fn[i]); }
    double precision(size_t i) const { return quotient(tp[i], tp[i] + fp[i]); }
    double specificity(size_t i) const {
      return quotient(tn[i], tn[i] + fp[i]);
    }
    double fall_out(size_t i) const { return quotient(fp[i], fp[i] + tn[i]); }
  };
  Values values() const {
    return {values_of(tp_), values_of(fp_), values_of(tn_), values_of(fn_)};
  }

 private:
  Variable tp_, fp_, tn_, fn_;
};

class AtValueMetric final : public FourCounts {
 public:
  using Rate = double (*)(const Values&, size_t);
  AtValueMetric(std::string name, double value,
                const metrics::AtValueOptions& o, Rate bound, Rate wanted)
      : FourCounts(std::move(name),
                   o.num_thresholds == 1
                       ? std::vector<double>{0.5}
                       : even_thresholds(o.num_thresholds, 0, 1)),
        value_(value),
        class_id_(o.class_id),
        bound_(bound),
        wanted_(wanted) {}
  void build(const Shape&, const Shape&) override {
    make_counts(counts_shape());
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    Tensor p = metric_floats(y_pred);
    Tensor y = like_prediction(name().c_str(), y_true, p), w = weight;
    if (class_id_) {
      if (w.defined()) {
        w = class_of_last_axis(spread_weights(name(), w, p), *class_id_);
      }
      p = class_of_last_axis(p, *class_id_);
      y = class_of_last_axis(y, *class_id_);
    }
    add(count(flat_batch(name(), y, p, w)));
  }
  Tensor result() override {
    const Values v = values();
    double best = 0;
    for (size_t i = 0; i < v.tp.size(); ++i) {
      if (bound_(v, i) >= value_) best = std::max(best, wanted_(v, i));
    }
    return constant(best);
  }

  static double recall(const Values& v, size_t i) { return v.recall(i); }
  static double precision(const Values& v, size_t i) { return v.precision(i); }
  static double specificity(const Values& v, size_t i) {
    return v.specificity(i);
  }

 private:
  const double value_;
  const std::optional<int64_t> class_id_;
  const Rate bound_, wanted_;
};

class AreaMetric final : public FourCounts {
 public:
  explicit AreaMetric(metrics::AUCOptions o)
      : FourCounts(metric_name(o.name, "auc"), all_thresholds(o)),
        o_(std::move(o)) {
    const auto one_of = [&](const char* what, const std::string& v,
                            std::initializer_list<const char*> known) {
      for (const char* k : known) {
        if (v == k) return;
      }
      throw errors::InvalidArgument(
          fmt::format("AUC: {} is \"{}\"; expected one of {}", what, v,
                      std::string_view(what) == "curve"
                          ? "ROC, PR, PRGAIN"
                          : "interpolation, minoring, majoring"));
    };
    one_of("curve", o_.curve, {"ROC", "PR", "PRGAIN"});
    one_of("summation_method", o_.summation_method,
           {"interpolation", "minoring", "majoring"});
  }

  bool needs_shapes() const override { return o_.multi_label; }
  void build(const Shape&, const Shape& y_pred) override {
    Shape shape = counts_shape();
    if (o_.multi_label) {
      if (y_pred.rank() != 2 || y_pred[1] < 1) {
        fail_metric(name(), fmt::format("predictions are {}; expected "
                                        "[n, labels] with multi_label",
                                        y_pred.str()));
      }
      labels_ = y_pred[1];
      const auto given = static_cast<int64_t>(o_.label_weights.size());
      if (given != 0 && given != labels_) {
        fail_metric(name(), fmt::format("there are {} label_weights for {} "
                                        "labels",
                                        given, labels_));
      }
      if (labels_ > 1) shape.insert(1, labels_);
    }
    make_counts(shape);
  }

  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    Tensor p = metric_floats(y_pred), w = weight;
    if (o_.from_logits) p = math::sigmoid(p, s);
    if (!o_.multi_label && !o_.label_weights.empty()) {
      w = w.defined() ? spread_weights(name(), w, p) : ones_like(p, s);
      const std::vector<float> factors(o_.label_weights.begin(),
                                       o_.label_weights.end());
      w = math::multiply(
          w, constant(factors, {static_cast<int64_t>(factors.size())}), s);
    }
    add(count(flat_batch(name(), y_true, p, w), labels_));
  }

  Tensor result() override {
    const Values all = values();
    double sum = 0, weights = 0;
    for (int64_t label = 0; label < labels_; ++label) {
      const double weight = o_.multi_label && !o_.label_weights.empty()
                                ? o_.label_weights[static_cast<size_t>(label)]
                                : 1;
      sum += weight * area(column(all, static_cast<size_t>(label)));
      weights += weight;
    }
    return constant(quotient(sum, weights));
  }

 private:
  static std::vector<double> all_thresholds(const metrics::AUCOptions& o) {
    constexpr double kEnd = 1e-7;  // beyond what roundings can do
    if (o.thresholds.empty()) {
      if (o.num_thresholds < 2 || o.num_thresholds > (1 << 16)) {
        throw errors::InvalidArgument(
            fmt::format("AUC: num_thresholds is {}; expected 2 to 65536",
                        o.num_thresholds));
      }
      return even_thresholds(o.num_thresholds, -kEnd, 1 + kEnd);
    }
    check_thresholds("auc", o.thresholds);
    std::vector<double> t = o.thresholds;
    std::sort(t.begin(), t.end());
    t.insert(t.begin(), -kEnd);
    t.push_back(1 + kEnd);
    return t;
  }

  Values column(const Values& all, size_t label) const {
    const auto of = [&](const std::vector<double>& v) {
      std::vector<double> one;
      for (size_t i = label; i < v.size(); i += static_cast<size_t>(labels_)) {
        one.push_back(v[i]);
      }
      return one;
    };
    return {of(all.tp), of(all.fp), of(all.tn), of(all.fn)};
  }

  double area(const Values& v) const {
    if (o_.curve == "PR" && o_.summation_method == "interpolation") {
      return interpolated_precision(v);
    }
    double sum = 0;
    for (size_t i = 0; i + 1 < v.tp.size(); ++i) {
      const auto [x0, y0] = point(v, i);
      const auto [x1, y1] = point(v, i + 1);
      double height = (y0 + y1) / 2;
      if (o_.summation_method == "minoring") height = std::min(y0, y1);
      if (o_.summation_method == "majoring") height = std::max(y0, y1);
      sum += (x0 - x1) * height;
    }
    return sum;
  }

  std::pair<double, double> point(const Values& v, size_t i) const {
    if (o_.curve == "ROC") return {v.fall_out(i), v.recall(i)};
    if (o_.curve == "PR") return {v.recall(i), v.precision(i)};
    // Flach and Kull 2015; a curve that lies below 0 is cut there.
    const double scale = quotient(v.tp[i] + v.fn[i], v.tn[i] + v.fp[i]);
    if (v.tp[i] == 0) return {0, 1};
    return {std::max(0.0, 1 - scale * quotient(v.fn[i], v.tp[i])),
            1 - scale * quotient(v.fp[i], v.tp[i])};
  }

  // Davis and Goadrich 2006: true and false positives change linearly between
  // thresholds, so that precision does not.
  static double interpolated_precision(const Values& v) {
    double sum = 0;
    for (size_t i = 0; i + 1 < v.tp.size(); ++i) {
      const double p0 = v.tp[i] + v.fp[i], p1 = v.tp[i + 1] + v.fp[i + 1];
      const double dtp = v.tp[i] - v.tp[i + 1];
      const double slope = quotient(dtp, std::max(p0 - p1, 0.0));
      const double intercept = v.tp[i + 1] - slope * p1;
      const double ratio = p0 > 0 && p1 > 0 ? p0 / p1 : 1;
      sum += quotient(slope * (dtp + intercept * std::log(ratio)),
                      v.tp[i + 1] + v.fn[i + 1]);
    }
    return sum;
  }

  const metrics::AUCOptions o_;
  int64_t labels_ = 1;
};

Metric count_metric(const char* class_name, const char* usual,
                    metrics::ConfusionOptions o,
                    Tensor CountMetric::Counts::*what) {
  const std::string name = metric_name(o.name, usual);
  check_thresholds(name, o.thresholds);
  return described_metric(
      class_name, std::make_shared<CountMetric>(name, o.thresholds, what), o);
}

Metric precision_metric(const char* class_name, const char* usual, bool recall,
                        metrics::PrecisionOptions o) {
  const std::string name = metric_name(o.name, usual);
  if (!o.thresholds.empty()) check_thresholds(name, o.thresholds);
  if ((o.top_k && *o.top_k < 1) || (o.class_id && *o.class_id < 0)) {
    throw errors::InvalidArgument(
        fmt::format("metric \"{}\": top_k or class_id is negative; expected "
                    "top_k from 1, class_id from 0",
                    name));
  }
  return described_metric(
      class_name, std::make_shared<PrecisionMetric>(name, recall, o), o);
}

// Fields of the metrics with a value that something must reach.
struct AtValueArgs {
  const char* value_name = "";
  double value = 0;
  metrics::AtValueOptions o;
  void fields(Fields& f) {
    f("name", o.name);
    f("num_thresholds", o.num_thresholds);
    f.must(value_name, value);
    f("class_id", o.class_id);
  }
};
template <Metric (*kMake)(double, metrics::AtValueOptions), char kWhat>
Metric at_value_of(Fields& f) {
  AtValueArgs args;
  args.value_name = kWhat == 's'   ? "specificity"
                    : kWhat == 'e' ? "sensitivity"
                    : kWhat == 'r' ? "recall"
                                   : "precision";
  args.fields(f);
  f.done();
  return kMake(args.value, args.o);
}
Metric at_value(const char* class_name, const char* usual, const char* what,
                double value, metrics::AtValueOptions o,
                AtValueMetric::Rate bound, AtValueMetric::Rate wanted) {
  const std::string name = metric_name(o.name, usual);
  if (!(value >= 0 && value <= 1) || o.num_thresholds < 1 ||
      o.num_thresholds > (1 << 16) || (o.class_id && *o.class_id < 0)) {
    throw errors::InvalidArgument(fmt::format(
        "metric \"{}\": {} is {}, num_thresholds {}; expected 0 to 1, and 1 to "
        "65536",
        name, what, value, o.num_thresholds));
  }
  auto base = std::make_shared<AtValueMetric>(name, value, o, bound, wanted);
  base->description =
      description(class_name, AtValueArgs{what, value, std::move(o)});
  return Metric(std::move(base));
}

}  // namespace

namespace metrics {

Metric TruePositives(ConfusionOptions o) {
  return count_metric("TruePositives", "true_positives", std::move(o),
                      CountMetric::tp());
}
Metric TrueNegatives(ConfusionOptions o) {
  return count_metric("TrueNegatives", "true_negatives", std::move(o),
                      CountMetric::tn());
}
Metric FalsePositives(ConfusionOptions o) {
  return count_metric("FalsePositives", "false_positives", std::move(o),
                      CountMetric::fp());
}
Metric FalseNegatives(ConfusionOptions o) {
  return count_metric("FalseNegatives", "false_negatives", std::move(o),
                      CountMetric::fn());
}
Metric Precision(PrecisionOptions o) {
  return precision_metric("Precision", "precision", false, std::move(o));
}
Metric Recall(PrecisionOptions o) {
  return precision_metric("Recall", "recall", true, std::move(o));
}
Metric SensitivityAtSpecificity(double value, AtValueOptions o) {
  return at_value("SensitivityAtSpecificity", "sensitivity_at_specificity",
                  "specificity", value, std::move(o),
                  &AtValueMetric::specificity, &AtValueMetric::recall);
}
Metric SpecificityAtSensitivity(double value, AtValueOptions o) {
  return at_value("SpecificityAtSensitivity", "specificity_at_sensitivity",
                  "sensitivity", value, std::move(o), &AtValueMetric::recall,
                  &AtValueMetric::specificity);
}
Metric PrecisionAtRecall(double value, AtValueOptions o) {
  return at_value("PrecisionAtRecall", "precision_at_recall", "recall", value,
                  std::move(o), &AtValueMetric::recall,
                  &AtValueMetric::precision);
}
Metric RecallAtPrecision(double value, AtValueOptions o) {
  return at_value("RecallAtPrecision", "recall_at_precision", "precision",
                  value, std::move(o), &AtValueMetric::precision,
                  &AtValueMetric::recall);
}
Metric AUC(AUCOptions o) {
  return described_metric("AUC", std::make_shared<AreaMetric>(o), o);
}

}  // namespace metrics

void add_confusion_metric_classes(Classes& c) {
  using namespace metrics;
  auto& all = c.metrics;
#define METRIC_CLASS(NAME, OPTIONS) all[#NAME] = &metric_of<OPTIONS, &NAME>;
  METRIC_CLASS(TruePositives, ConfusionOptions)
  METRIC_CLASS(TrueNegatives, ConfusionOptions)
  METRIC_CLASS(FalsePositives, ConfusionOptions)
  METRIC_CLASS(FalseNegatives, ConfusionOptions)
  METRIC_CLASS(Precision, PrecisionOptions)
  METRIC_CLASS(Recall, PrecisionOptions)
  METRIC_CLASS(AUC, AUCOptions)
#undef METRIC_CLASS
  all["SensitivityAtSpecificity"] =
      &at_value_of<&SensitivityAtSpecificity, 's'>;
  all["SpecificityAtSensitivity"] =
      &at_value_of<&SpecificityAtSensitivity, 'e'>;
  all["PrecisionAtRecall"] = &at_value_of<&PrecisionAtRecall, 'r'>;
  all["RecallAtPrecision"] = &at_value_of<&RecallAtPrecision, 'p'>;
}

}  // namespace berth::keras
