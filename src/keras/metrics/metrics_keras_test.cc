// Metrics against Keras, on uneven batches (conformance/fixtures).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using MetricJson = nlohmann::json;

MetricJson metric_fixtures() {
  std::ifstream file(BERTH_SOURCE_DIR
                     "/conformance/fixtures/keras_metrics.json");
  return MetricJson::parse(file);
}

Tensor metric_tensor(const MetricJson& j) {
  if (j.is_null()) return {};
  Shape shape;
  for (int64_t d : j[0]) shape.insert(shape.rank(), d);
  return constant(j[1].get<std::vector<float>>(), shape);
}

void add_update(const Metric& m, const MetricJson& update) {
  const Tensor y = metric_tensor(update[0]), p = metric_tensor(update[1]),
               w = metric_tensor(update[2]);
  if (y.defined()) {
    m.update_state(y, p, w);
  } else {
    m.update_state(p, {.sample_weight = w});
  }
}

std::vector<double> wanted_of(const MetricJson& result) {
  if (result.is_number()) return {result.get<double>()};
  return result.get<std::vector<double>>();
}

TEST(KerasMetrics, AreThoseOfKerasOnUnevenBatches) {
  const MetricJson all = metric_fixtures();
  EXPECT_GE(all["cases"].size(), 93u);
  for (const MetricJson& c : all["cases"]) {
    SCOPED_TRACE(c["metric"].dump());
    const Metric m = metrics::deserialize(Config::parse(c["metric"].dump()));
    for (int round = 0; round < 2; ++round) {  // again after a reset
      for (const MetricJson& update : c["updates"]) add_update(m, update);
      const Tensor r = m.result_tensor();
      const std::vector<double> want = wanted_of(c["result"]);
      const std::vector<double> got =
          math::cast(r, float64).to_vector<double>();
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_NEAR(got[i], want[i], 2e-5 * std::max(1.0, std::abs(want[i])));
      }
      m.reset_state();
    }
    // Its config makes one that counts the same.
    const Config config = metrics::serialize(m);
    EXPECT_EQ(metrics::serialize(metrics::deserialize(config)), config);
  }
}

TEST(KerasMetrics, CountInATracedStepOfUnknownBatch) {
  const Metric auc = metrics::AUC({.num_thresholds = 9});
  const Metric f1 = metrics::F1Score({.average = "macro"});
  const Metric precision = metrics::Precision({.top_k = 1});
  auto step = function(
      [&](const Tensor& y, const Tensor& p) {
        for (const Metric& m : {auc, f1, precision}) m.update_state(y, p);
        return math::reduce_sum(p);
      },
      {.input_signature = {{{-1, 2}, float32, {}}, {{-1, 2}, float32, {}}}});
  const Tensor y = constant({{1.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}});
  const Tensor p = constant({{.9f, .1f}, {.6f, .4f}, {.7f, .3f}});
  step(y, p);
  step(slice(y, {0, 0}, {1, 2}), slice(p, {0, 0}, {1, 2}));
  EXPECT_EQ(step.num_traces(), 1);
  // 4 rows, of which the third answer of 4 is wrong.
  EXPECT_DOUBLE_EQ(precision.result(), 0.75);
  EXPECT_GT(auc.result(), 0.8);
  EXPECT_GT(f1.result(), 0.4);
}

TEST(KerasMetrics, OfSeveralValuesHaveTheirMeanAsResult) {
  const Metric m = metrics::Recall({.thresholds = {0.2, 0.9}});
  m.update_state(constant({1.f, 1.f}), constant({0.5f, 0.95f}));
  EXPECT_EQ(m.result_tensor().to_vector<double>(),
            (std::vector<double>{1, 0.5}));
  EXPECT_DOUBLE_EQ(m.result(), 0.75);
  EXPECT_DOUBLE_EQ(metrics::F1Score().result(), 0);  // no data
}

TEST(KerasMetrics, MeanTensorAndConfusionMatrixKeepShapes) {
  const Metric mean = metrics::MeanTensor();
  mean.update_state(constant({{1.f, 2.f}, {3.f, 4.f}}));
  mean.update_state(constant({{3.f, 2.f}, {1.f, 0.f}}),
                    {.sample_weight = constant({1.f, 3.f})});
  EXPECT_EQ(mean.result_tensor().to_vector<double>(),
            (std::vector<double>{2, 2, 1.5, 1}));
  EXPECT_THROW(mean.update_state(constant({1.f})), errors::InvalidArgument);
  const Metric matrix = metrics::ConfusionMatrix(2);
  matrix.update_state(constant({0, 1, 1}),
                      constant({{.9f, .1f}, {.2f, .8f}, {.6f, .4f}}));
  EXPECT_EQ(matrix.result_tensor().to_vector<double>(),
            (std::vector<double>{1, 0, 1, 1}));
}

class LargestSum : public MetricBase {
 public:
  LargestSum() : MetricBase("largest") {}
  void build(const Shape&, const Shape&) override {
    sum_ = add_variable("sum");
  }
  void update_state(const Tensor&, const Tensor& y_pred,
                    const Tensor&) override {
    sum_.assign_add(math::reduce_max(y_pred));
  }
  Tensor result() override { return sum_.value(); }

 private:
  Variable sum_;
};

TEST(KerasMetrics, OfYourOwnAreCountedByFit) {
  const Metric largest = make_metric<LargestSum>();
  Sequential model({Dense(1, {.kernel_initializer = "ones"})});
  model.compile({.optimizer = SGD(0), .loss = "mse", .metrics = {largest}});
  const Tensor x = constant({{1.f}, {2.f}, {3.f}});
  const Logs logs = model.evaluate(x, x, {.batch_size = 2});
  EXPECT_EQ(logs.at("largest"), 5);
  EXPECT_THROW(largest.total(), errors::FailedPrecondition);
  EXPECT_EQ(largest.variables().size(), 1u);
}

TEST(KerasMetrics, SayWhatIsWrong) {
  EXPECT_THROW(metrics::AUC({.curve = "roc"}), errors::InvalidArgument);
  EXPECT_THROW(metrics::AUC({.num_thresholds = 1}), errors::InvalidArgument);
  EXPECT_THROW(metrics::Precision({.thresholds = {2}}),
               errors::InvalidArgument);
  EXPECT_THROW(metrics::F1Score({.average = "mean"}), errors::InvalidArgument);
  EXPECT_THROW(metrics::MeanIoU(1), errors::InvalidArgument);
  EXPECT_THROW(metrics::IoU(3, {.target_class_ids = {3}}),
               errors::InvalidArgument);
  EXPECT_THROW(metrics::F1Score().update_state(ones({2}), ones({2})),
               errors::InvalidArgument);
  EXPECT_THROW(
      metrics::Mean().update_state(ones({2}), {.sample_weight = ones({3})}),
      errors::InvalidArgument);
  EXPECT_THROW(Metric("f2"), errors::InvalidArgument);
  // A failed build leaves it usable.
  const Metric f1 = metrics::F1Score({.average = "micro"});
  EXPECT_THROW(f1.update_state(ones({2}), ones({2})), errors::InvalidArgument);
  f1.update_state(ones({2, 1}), ones({2, 1}));
  EXPECT_NEAR(f1.result(), 1, 1e-6);
}

}  // namespace
}  // namespace berth::keras
