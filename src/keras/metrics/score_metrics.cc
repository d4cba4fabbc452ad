// F-scores, and R2: the coefficient of determination.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_shapes.h"
#include "keras/metrics/metric_names.h"
#include "keras/metrics/metric_util.h"
#include "op/dispatcher.h"

namespace berth::keras {

void metric_fields(Fields& f, metrics::R2ScoreOptions& o) {
  f.text_or_null("class_aggregation", o.class_aggregation);
  f("num_regressors", o.num_regressors);
}
void metric_fields(Fields& f, metrics::FBetaScoreOptions& o) {
  f.text_or_null("average", o.average);
  f("beta", o.beta);
  f("threshold", o.threshold);
}
void metric_fields(Fields& f, metrics::F1ScoreOptions& o) {
  f.text_or_null("average", o.average);
  f("threshold", o.threshold);
}

namespace {

constexpr double kScoreEpsilon = 1e-7;

Tensor sum_of_rows(const Tensor& x, bool all) {
  return all ? math::reduce_sum(x, {}, t_state.site)
             : math::reduce_sum(x, {.axis = std::vector<int64_t>{0}},
                                t_state.site);
}

// y_pred [n, outputs], its targets, and weights of that shape.
FlatBatch rows_of(const std::string& name, const Tensor& y_true,
                  const Tensor& y_pred, const Tensor& weight) {
  const Tensor p = metric_floats(y_pred);
  const Tensor y = like_prediction(name.c_str(), y_true, p);
  const Tensor w = weight.defined() ? spread_weights(name, weight, p)
                                    : ones_like(p, t_state.site);
  return {y, p, w};
}

void check_rows(const std::string& name, const Shape& y_pred) {
  if (y_pred.rank() == 2 && y_pred[1] >= 0) return;
  fail_metric(name, fmt::format("predictions are {}; expected [n, outputs]",
                                y_pred.str()));
}

class FScore final : public MetricBase {
 public:
  FScore(std::string name, metrics::FBetaScoreOptions o)
      : MetricBase(std::move(name)), o_(std::move(o)) {
    const bool known = o_.average.empty() || o_.average == "micro" ||
                       o_.average == "macro" || o_.average == "weighted";
    if (!known || !(o_.beta > 0) ||
        (o_.threshold && !(*o_.threshold > 0 && *o_.threshold <= 1))) {
      throw errors::InvalidArgument(fmt::format(
          "metric \"{}\": average is \"{}\", beta {}, threshold {}; expected "
          "micro, macro, weighted or \"\", more than 0, more than 0 and at "
          "most 1",
          this->name(), o_.average, o_.beta, o_.threshold.value_or(0.5)));
    }
  }
  bool needs_shapes() const override { return true; }
  void build(const Shape&, const Shape& y_pred) override {
    check_rows(name(), y_pred);
    const Shape shape = o_.average == "micro" ? Shape{} : Shape{y_pred[1]};
    tp_ = add_variable("true_positives", shape);
    fp_ = add_variable("false_positives", shape);
    fn_ = add_variable("false_negatives", shape);
    weights_ = add_variable("intermediate_weights", shape);
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    const FlatBatch b = rows_of(name(), y_true, y_pred, weight);
    const Tensor p = metric_floats(positive(b.y_pred));
    const Tensor yw = math::multiply(b.y_true, b.weight, s);
    const Tensor pw = math::multiply(p, b.weight, s);
    const Tensor both = math::multiply(yw, p, s);
    const bool all = o_.average == "micro";
    tp_.assign_add(sum_of_rows(both, all), s);
    fp_.assign_add(
        sum_of_rows(math::subtract(pw, math::multiply(pw, b.y_true, s), s),
                    all),
        s);
    fn_.assign_add(sum_of_rows(math::subtract(yw, both, s), all), s);
    weights_.assign_add(sum_of_rows(yw, all), s);
  }
  Tensor result() override {
    std::vector<double> tp = values_of(tp_);
    const std::vector<double> fp = values_of(fp_), fn = values_of(fn_),
                              w = values_of(weights_);
    const double beta2 = o_.beta * o_.beta;
    double weights = kScoreEpsilon, sum = 0, weighted = 0;
    for (double v : w) weights += v;
    for (size_t i = 0; i < tp.size(); ++i) {
      const double precision = tp[i] / (tp[i] + fp[i] + kScoreEpsilon);
      const double recall = tp[i] / (tp[i] + fn[i] + kScoreEpsilon);
      tp[i] = (1 + beta2) * precision * recall /
              (beta2 * precision + recall + kScoreEpsilon);
      sum += tp[i];
      weighted += tp[i] * w[i] / weights;
    }
    if (o_.average.empty()) {
      return constant(tp, {static_cast<int64_t>(tp.size())});
    }
    return constant(o_.average == "weighted"
                        ? weighted
                        : quotient(sum, static_cast<double>(tp.size())));
  }

 private:
  Tensor positive(const Tensor& p) const {
    const Site s = t_state.site;
    if (o_.threshold) return p > *o_.threshold;
    const Tensor most = math::reduce_max(
        p, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, s);
    return math::logical_and(math::greater_equal(p, most, s),
                             math::abs(p, s) > 1e-9, s);
  }

  const metrics::FBetaScoreOptions o_;
  Variable tp_, fp_, fn_, weights_;
};

class DeterminationMetric final : public MetricBase {
 public:
  explicit DeterminationMetric(metrics::R2ScoreOptions o)
      : MetricBase(metric_name(o.name, "r2_score")), o_(std::move(o)) {
    const std::string& a = o_.class_aggregation;
    if ((!a.empty() && a != "uniform_average" &&
         a != "variance_weighted_average") ||
        o_.num_regressors < 0) {
      throw errors::InvalidArgument(fmt::format(
          "R2Score: class_aggregation is \"{}\", num_regressors {}; expected "
          "uniform_average, variance_weighted_average or \"\", 0 or more",
          a, o_.num_regressors));
    }
  }
  bool needs_shapes() const override { return true; }
  void build(const Shape&, const Shape& y_pred) override {
    check_rows(name(), y_pred);
    const Shape shape{y_pred[1]};
    squared_sum_ = add_variable("squared_sum", shape);
    sum_ = add_variable("sum", shape);
    errors_ = add_variable("residual", shape);
    count_ = add_variable("count", shape);
    samples_ = add_variable("num_samples");
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Site s = t_state.site;
    const FlatBatch b = rows_of(name(), y_true, y_pred, weight);
    const Tensor yw = math::multiply(b.y_true, b.weight, s);
    sum_.assign_add(sum_of_rows(yw, false), s);
    squared_sum_.assign_add(sum_of_rows(math::multiply(yw, b.y_true, s), false),
                            s);
    const Tensor e = math::squared_difference(b.y_true, b.y_pred, s);
    errors_.assign_add(sum_of_rows(math::multiply(e, b.weight, s), false), s);
    count_.assign_add(sum_of_rows(b.weight, false), s);
    samples_.assign_add(math::reduce_sum(ones_like(b.y_pred, s), {}, s), s);
  }
  Tensor result() override {
    const std::vector<double> squares = values_of(squared_sum_),
                              sums = values_of(sum_), e = values_of(errors_),
                              n = values_of(count_);
    std::vector<double> score;
    double variance = 0, weighted = 0, total = 0;
    for (size_t i = 0; i < e.size(); ++i) {
      const double around = squares[i] - sums[i] * quotient(sums[i], n[i]);
      score.push_back(around == 0 ? 0 : 1 - e[i] / around);
      total += score.back();
      variance += around;
      weighted += around * score.back();
    }
    if (o_.class_aggregation == "uniform_average") {
      score = {quotient(total, static_cast<double>(score.size()))};
    } else if (!o_.class_aggregation.empty()) {
      score = {quotient(weighted, variance)};
    }
    for (double& r : score) r = adjusted(r);
    if (o_.class_aggregation.empty()) {
      return constant(score, {static_cast<int64_t>(score.size())});
    }
    return constant(score[0]);
  }

 private:
  double adjusted(double r) const {
    const double samples = values_of(samples_)[0];
    const auto p = static_cast<double>(o_.num_regressors);
    if (p == 0 || samples - p - 1 <= 0) return r;
    return 1 - (1 - r) * (samples - 1) / (samples - p - 1);
  }
  const metrics::R2ScoreOptions o_;
  Variable squared_sum_, sum_, errors_, count_, samples_;
};

}  // namespace

namespace metrics {

Metric R2Score(R2ScoreOptions o) {
  return described_metric("R2Score", std::make_shared<DeterminationMetric>(o),
                          o);
}
Metric FBetaScore(FBetaScoreOptions o) {
  return described_metric(
      "FBetaScore",
      std::make_shared<FScore>(metric_name(o.name, "fbeta_score"), o), o);
}
Metric F1Score(F1ScoreOptions o) {
  return described_metric(
      "F1Score",
      std::make_shared<FScore>(
          metric_name(o.name, "f1_score"),
          FBetaScoreOptions{.average = o.average, .threshold = o.threshold}),
      o);
}

}  // namespace metrics

void add_score_metrics_classes(Classes& c) {
  using namespace metrics;
  auto& all = c.metrics;
  all["R2Score"] = &metric_of<R2ScoreOptions, &R2Score>;
  all["FBetaScore"] = &metric_of<FBetaScoreOptions, &FBetaScore>;
  all["F1Score"] = &metric_of<F1ScoreOptions, &F1Score>;
}

}  // namespace berth::keras
