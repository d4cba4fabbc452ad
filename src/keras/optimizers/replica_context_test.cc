// What losses, optimizers, metrics and layers do in a replica, seen from one
// of two replicas that compute the same: combining is doubling.

#include <gtest/gtest.h>

#include <cmath>

#include "base/diagnostics_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "tensor/variable_state.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

class TwoReplicas final : public StrategyScope {
 public:
  const std::string& name() const override { return name_; }
  int num_replicas() const override { return 2; }
  Device& home(const DeviceScope* scope) const override {
    return scope && scope->device ? *scope->device
                                  : DeviceManager::get().default_device();
  }
  void adopt(const Tensor& handle) const override {
    adopted.push_back(variable_state(handle).name);
  }
  mutable std::vector<std::string> adopted;

 private:
  const std::string name_ = "MirroredStrategy";
};

class OneOfTwo final : public ReplicaScope {
 public:
  explicit OneOfTwo(double share) : share_(share) { t_state.replica = this; }
  ~OneOfTwo() override { t_state.replica = nullptr; }
  StrategyScope& strategy() const override { return both; }
  int id() const override { return 0; }
  Tensor all_reduce(VariableAggregation how, const Tensor& value) override {
    return how == VariableAggregation::kMean ? value : value * 2.0;
  }
  Tensor to_write(const Tensor& handle, const Tensor& value,
                  const char*) override {
    if (Unaggregated::active()) return value;
    const auto how = variable_state(handle).aggregation;
    EXPECT_NE(how, VariableAggregation::kNone) << variable_state(handle).name;
    return all_reduce(how, value);
  }
  double share() const override { return share_; }

  mutable TwoReplicas both;

 private:
  const double share_;
};

// A loss over 4 of 16 values: the sum over 16.
TEST(ReplicaContext, LossesDivideByTheValuesOfAllReplicas) {
  const Tensor y = zeros({4, 1}), p = constant({{1.f}, {2.f}, {3.f}, {4.f}});
  const Loss mse("mse");
  EXPECT_FLOAT_EQ(mse(y, p).item<float>(), 7.5f);
  const OneOfTwo replica(0.25);
  EXPECT_FLOAT_EQ(mse(y, p).item<float>(), 30 / 16.f);
  const Loss sum = losses::MeanSquaredError({.reduction = "sum"});
  EXPECT_FLOAT_EQ(sum(y, p).item<float>(), 30);
}

TEST(ReplicaContext, AReplicaWithoutExamplesHasALossOfZeroAndNoNan) {
  const Variable w(ones({1, 1}), {.name = "w"});
  const OneOfTwo replica(0);
  GradientTape tape;
  const Tensor loss = Loss("mse")(zeros({0, 1}), matmul(zeros({0, 1}), w));
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(tape.gradient(loss, w).to_vector<float>(), Floats{0});
}

TEST(ReplicaContext, AverageLossesDivideByTheGlobalBatch) {
  const Tensor loss = constant({1.f, 2.f, 3.f, 6.f});
  EXPECT_FLOAT_EQ(nn::compute_average_loss(loss).item<float>(), 3);
  const OneOfTwo replica(0.25);
  EXPECT_FLOAT_EQ(nn::compute_average_loss(loss).item<float>(), 12 / 16.f);
  EXPECT_FLOAT_EQ(
      nn::compute_average_loss(loss, {.global_batch_size = 8}).item<float>(),
      1.5f);
  EXPECT_FLOAT_EQ(nn::compute_average_loss(
                      loss, {.sample_weight = constant({1.f, 0.f, 0.f, 1.f})})
                      .item<float>(),
                  7 / 16.f);
  EXPECT_FLOAT_EQ(nn::scale_regularization_loss(constant(3.f)).item<float>(),
                  1.5f);
  EXPECT_THROW(nn::compute_average_loss(constant(3.f)),
               errors::InvalidArgument);
}

TEST(ReplicaContext, OptimizersSumGradientsAndUpdateOnce) {
  const Variable w(constant({1.f, 2.f}), {.name = "w"});
  const SGD sgd(0.5);
  const OneOfTwo replica(0.5);
  sgd.apply_gradients({constant({1.f, 3.f})}, {w});
  EXPECT_EQ(w.value().to_vector<float>(), (Floats{0, -1}));
  EXPECT_EQ(sgd.iterations().value().item<int64_t>(), 1);
}

TEST(ReplicaContext, SlotsAndCountersBelongToTheStrategy) {
  const Variable w(constant({1.f}), {.name = "w"});
  const Adam adam;
  const OneOfTwo replica(0.5);
  adam.apply_gradients({constant({1.f})}, {w});
  EXPECT_EQ(replica.both.adopted,
            (std::vector<std::string>{"adam/learning_rate", "adam/iterations",
                                      "adam/beta_1_power", "adam/beta_2_power",
                                      "adam/w/m", "adam/w/v"}));
}

TEST(ReplicaContext, LayersBuiltInAReplicaBelongToTheStrategy) {
  const OneOfTwo replica(0.5);
  const Dense layer(2, {.name = "lazy"});
  layer(ones({1, 3}));
  EXPECT_EQ(replica.both.adopted,
            (std::vector<std::string>{"lazy/kernel", "lazy/bias"}));
}

TEST(ReplicaContext, MetricsAddUpWhatAllReplicasSaw) {
  const Metric mean = metrics::Mean();
  {
    const OneOfTwo replica(0.5);
    mean.update_state(constant({1.f, 4.f}));
  }
  EXPECT_FLOAT_EQ(mean.total().value().item<float>(), 10);
  EXPECT_FLOAT_EQ(mean.count().value().item<float>(), 4);
  EXPECT_FLOAT_EQ(static_cast<float>(mean.result()), 2.5f);
}

TEST(ReplicaContext, MovingAveragesCountReplicasByTheirExamples) {
  BatchNormalization layer({.momentum = 0.5});
  layer(ones({1, 1}), false);
  const OneOfTwo replica(0.25);  // half of what an equal share would be
  layer(constant({{8.f}, {8.f}}), true);
  const auto values = layer.get_weights();
  EXPECT_FLOAT_EQ(values[2].to_vector<float>()[0], 0.5f * 0.5f * 8);
}

TEST(ReplicaContext, BatchNormalizationOfNoExamplesMovesNothing) {
  BatchNormalization layer;
  layer(ones({1, 2}), false);
  const OneOfTwo replica(0);
  GradientTape tape;
  const Tensor y = layer(zeros({0, 2}), true);
  const auto grads = tape.gradient(y, layer.trainable_variables());
  for (const Tensor& g : grads) {
    EXPECT_EQ(g.to_vector<float>(), (Floats{0, 0}));
  }
  const auto weights = layer.get_weights();
  EXPECT_EQ(weights[2].to_vector<float>(), (Floats{0, 0}));
  EXPECT_EQ(weights[3].to_vector<float>(), (Floats{1, 1}));
}

struct Step {
  Variable w{ones({3, 1}), {.name = "w"}};
  Tensor x = ones({4, 3});

  size_t lints(const std::function<Tensor(const Tensor&)>& loss) const {
    const Heard heard;
    GradientTape tape;
    const Tensor target = loss(matmul(x, w));
    tape.gradient(target, w);
    return heard.of("local-mean").size();
  }
};

TEST(LocalMean, IsSaidOfAMeanOverTheBatchThatIsTheLoss) {
  const Step step;
  const auto mean = [](const Tensor& y) { return math::reduce_mean(y); };
  EXPECT_EQ(step.lints(mean), 0u);
  const OneOfTwo replica(0.5);
  EXPECT_EQ(step.lints(mean), 1u);
  EXPECT_EQ(step.lints([](const Tensor& y) {
    return math::reduce_mean(y) + math::reduce_sum(y) * 0.1;
  }),
            1u);
}

TEST(LocalMean, IsNotSaidOfWhatIsScaledOrSummed) {
  const Step step;
  const OneOfTwo replica(0.5);
  EXPECT_EQ(
      step.lints([](const Tensor& y) { return math::reduce_mean(y) * 0.5; }),
      0u);
  EXPECT_EQ(step.lints([](const Tensor& y) {
    return math::reduce_sum(math::reduce_mean(y, {.axis = {{1}}})) / 8.0;
  }),
            0u);
  EXPECT_EQ(step.lints([](const Tensor& y) {
    return Loss("mse")(zeros({4, 1}), y);
  }),
            0u);
}

TEST(UpdateContext, ApplyGradientsInTheScopeAndOutsideOfRunIsAnError) {
  const TwoReplicas strategy;
  const Variable w(constant({1.f}), {.name = "w"});
  const SGD sgd(0.5);
  t_state.strategy = const_cast<TwoReplicas*>(&strategy);
  std::string text;
  try {
    sgd.apply_gradients({constant({1.f})}, {w});
  } catch (const errors::FailedPrecondition& e) {
    text = e.what();
  }
  t_state.strategy = nullptr;
  for (const char* part :
       {"apply_gradients() in cross-replica context", "MirroredStrategy",
        "2 replicas", "replica_context_test.cc:", "strategy.run(step"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(w.value().item<float>(), 1);
}

TEST(UnusedVariables, AreNamedOnceAndSkipped) {
  const Heard heard;
  const Variable used(constant({1.f}), {.name = "used"});
  const Variable spare(constant({1.f}), {.name = "spare"});
  const SGD sgd(0.5);
  for (int i = 0; i < 3; ++i) {
    GradientTape tape;
    const Tensor loss = math::reduce_sum(used.value() * 2);
    sgd.apply_gradients(tape.gradient(loss, std::vector<Variable>{used, spare}),
                        {used, spare});
  }
  EXPECT_NE(heard.text_of("unused-variables").find("\"spare\""),
            std::string::npos);
  EXPECT_EQ(used.value().item<float>(), -2);
  EXPECT_EQ(spare.value().item<float>(), 1);
}

TEST(UnusedVariables, OfAModelAreNamedWhenItsStepIsTraced) {
  const Heard heard;
  const Dense unused(3, {.name = "unused"});
  class Forked : public LayerBase {
   public:
    explicit Forked(Layer unused)
        : LayerBase("forked"), a_(track(Dense(1))), b_(track(unused)) {}
    Tensors call(const Tensors& x, bool) override {
      b_(x[0]);
      return {a_(x[0])};
    }

   private:
    Layer a_, b_;
  };
  auto model = Model::make<Forked>(unused);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.fit(ones({4, 2}), ones({4, 1}), {.epochs = 3, .verbose = 0});
  const std::string text = heard.text_of("unused-variables");
  EXPECT_NE(text.find("2 of 4 variables"), std::string::npos) << text;
  EXPECT_NE(text.find("\"unused/kernel\""), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::keras
