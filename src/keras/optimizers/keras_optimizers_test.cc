// Optimizers and schedules against what Keras makes of the same gradients
// (conformance/fixtures/make_keras_optimizers.py), and in fit.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

using nlohmann::json;

const json& keras_fixture() {
  static const json* all = [] {
    std::ifstream file(BERTH_SOURCE_DIR
                       "/conformance/fixtures/keras_optimizers.json");
    EXPECT_TRUE(file);
    return std::make_unique<json>(json::parse(file)).release();
  }();
  return *all;
}

template <class T>
void take(const json& j, const char* name, T* field) {
  if (j.contains(name)) *field = j.at(name).get<T>();
}

LearningRateSchedule schedule_of(const json& s) {
  using namespace optimizers::schedules;
  const std::string name = s.at("class");
  const json &a = s.at("args"), &o = s.at("options");
  const auto first = [&] { return a[0].get<double>(); };
  const auto steps = [&] { return a[1].get<int64_t>(); };
  if (name == "ExponentialDecay" || name == "InverseTimeDecay") {
    StaircaseOptions c;
    take(o, "staircase", &c.staircase);
    return name == "ExponentialDecay"
               ? ExponentialDecay(first(), steps(), a[2], c)
               : InverseTimeDecay(first(), steps(), a[2], c);
  }
  if (name == "PiecewiseConstantDecay") {
    return PiecewiseConstantDecay(a[0].get<std::vector<int64_t>>(),
                                  a[1].get<std::vector<double>>());
  }
  if (name == "PolynomialDecay") {
    PolynomialDecayOptions c;
    take(o, "end_learning_rate", &c.end_learning_rate);
    take(o, "power", &c.power);
    take(o, "cycle", &c.cycle);
    return PolynomialDecay(first(), steps(), c);
  }
  if (name == "CosineDecay") {
    CosineDecayOptions c;
    take(o, "alpha", &c.alpha);
    take(o, "warmup_steps", &c.warmup_steps);
    if (o.contains("warmup_target")) c.warmup_target = o["warmup_target"];
    return CosineDecay(first(), steps(), c);
  }
  CosineDecayRestartsOptions c;
  take(o, "t_mul", &c.t_mul);
  take(o, "m_mul", &c.m_mul);
  take(o, "alpha", &c.alpha);
  EXPECT_EQ(name, "CosineDecayRestarts");
  return CosineDecayRestarts(first(), steps(), c);
}

template <class Options>
Options options_of(const json& o) {
  Options c;
  take(o, "weight_decay", &c.weight_decay);
  take(o, "clipnorm", &c.clipnorm);
  take(o, "clipvalue", &c.clipvalue);
  take(o, "global_clipnorm", &c.global_clipnorm);
  take(o, "use_ema", &c.use_ema);
  take(o, "ema_momentum", &c.ema_momentum);
  take(o, "ema_overwrite_frequency", &c.ema_overwrite_frequency);
  take(o, "loss_scale_factor", &c.loss_scale_factor);
  take(o, "gradient_accumulation_steps", &c.gradient_accumulation_steps);
  if constexpr (requires { c.beta_1; }) {
    take(o, "beta_1", &c.beta_1);
    take(o, "beta_2", &c.beta_2);
  }
  if constexpr (requires { c.epsilon; }) take(o, "epsilon", &c.epsilon);
  if constexpr (requires { c.amsgrad; }) take(o, "amsgrad", &c.amsgrad);
  if constexpr (requires { c.momentum; }) take(o, "momentum", &c.momentum);
  if constexpr (requires { c.nesterov; }) take(o, "nesterov", &c.nesterov);
  if constexpr (requires { c.rho; }) take(o, "rho", &c.rho);
  if constexpr (requires { c.centered; }) take(o, "centered", &c.centered);
  if constexpr (requires { c.initial_accumulator_value; }) {
    take(o, "initial_accumulator_value", &c.initial_accumulator_value);
  }
  if constexpr (requires { c.relative_step; }) {
    take(o, "relative_step", &c.relative_step);
    take(o, "clip_threshold", &c.clip_threshold);
    take(o, "beta_2_decay", &c.beta_2_decay);
  }
  if constexpr (requires { c.learning_rate_power; }) {
    take(o, "learning_rate_power", &c.learning_rate_power);
    take(o, "l1_regularization_strength", &c.l1_regularization_strength);
    take(o, "l2_regularization_strength", &c.l2_regularization_strength);
    take(o, "l2_shrinkage_regularization_strength",
         &c.l2_shrinkage_regularization_strength);
    take(o, "beta", &c.beta);
  }
  return c;
}

Optimizer recorded_optimizer(const json& c) {
  const std::string name = c.at("class");
  const LearningRate rate = c.contains("schedule")
                                ? LearningRate(schedule_of(c["schedule"]))
                                : LearningRate(c.at("rate").get<double>());
  const json& o = c.at("options");
  if (name == "SGD") return SGD(rate, options_of<optimizers::SGDOptions>(o));
  if (name == "Adam") return Adam(rate, options_of<optimizers::AdamOptions>(o));
  if (name == "AdamW") {
    return AdamW(rate, options_of<optimizers::AdamWOptions>(o));
  }
  if (name == "Adamax") {
    return Adamax(rate, options_of<optimizers::AdamaxOptions>(o));
  }
  if (name == "Nadam") {
    return Nadam(rate, options_of<optimizers::NadamOptions>(o));
  }
  if (name == "Lamb") return Lamb(rate, options_of<optimizers::LambOptions>(o));
  if (name == "Lion") return Lion(rate, options_of<optimizers::LionOptions>(o));
  if (name == "RMSprop") {
    return RMSprop(rate, options_of<optimizers::RMSpropOptions>(o));
  }
  if (name == "Adagrad") {
    return Adagrad(rate, options_of<optimizers::AdagradOptions>(o));
  }
  if (name == "Adadelta") {
    return Adadelta(rate, options_of<optimizers::AdadeltaOptions>(o));
  }
  if (name == "Adafactor") {
    return Adafactor(rate, options_of<optimizers::AdafactorOptions>(o));
  }
  EXPECT_EQ(name, "Ftrl");
  return Ftrl(rate, options_of<optimizers::FtrlOptions>(o));
}

Tensor shaped(const json& data, const json& shape) {
  return constant(data.get<std::vector<float>>(),
                  Shape(shape.get<std::vector<int64_t>>()));
}

// Follows one case; `traced`: each step is a call of a compiled function.
void follow(const json& c, bool traced) {
  const json& f = keras_fixture();
  SCOPED_TRACE(c.at("class").get<std::string>() + c.at("options").dump() +
               (traced ? " traced" : " eager"));
  const Optimizer optimizer = recorded_optimizer(c);
  std::vector<Variable> variables;
  for (size_t i = 0; i < 2; ++i) {
    variables.push_back(Variable(shaped(f["start"][i], f["shapes"][i]),
                                 {.name = "v" + std::to_string(i)}));
  }
  const auto apply = [&](const Tensors& grads) {
    optimizer.apply_gradients(grads, variables);
    return Tensor(constant(0.f));
  };
  const auto step = function(apply);
  size_t shown = 0;
  for (int s = 1; s <= 20; ++s) {
    const json& g = f["gradients"][static_cast<size_t>(s - 1)];
    const Tensors grads = {shaped(g[0], f["shapes"][0]),
                           shaped(g[1], f["shapes"][1])};
    traced ? step(grads) : apply(grads);
    if (f["shown"][shown] != s) continue;
    for (size_t i = 0; i < 2; ++i) {
      const auto want = c["values"][shown][i].get<std::vector<double>>();
      const auto have = variables[i].value().to_vector<double>();
      for (size_t k = 0; k < want.size(); ++k) {
        ASSERT_NEAR(have[k], want[k], 2e-5 * std::max(1.0, std::abs(want[k])))
            << "step " << s << ", variable " << i << ", element " << k;
      }
    }
    ++shown;
  }
  if (traced) {
    EXPECT_EQ(step.num_traces(), 1);
  }
  EXPECT_EQ(optimizer.iterations().value().item<int64_t>(), 20);
}

TEST(KerasOptimizers, FollowKerasStepByStepEagerly) {
  for (const json& c : keras_fixture().at("optimizers")) follow(c, false);
}

TEST(KerasOptimizers, FollowKerasStepByStepInTheSlowTrace) {
  for (const json& c : keras_fixture().at("optimizers")) follow(c, true);
}

TEST(KerasOptimizers, SchedulesGiveTheRatesOfKeras) {
  const auto at = keras_fixture().at("at").get<std::vector<int64_t>>();
  for (const json& s : keras_fixture().at("schedules")) {
    const LearningRateSchedule schedule = schedule_of(s);
    EXPECT_EQ(schedule.class_name(), s.at("class").get<std::string>());
    for (size_t i = 0; i < at.size(); ++i) {
      EXPECT_NEAR(schedule(at[i]), s["rates"][i].get<double>(), 2e-6)
          << s.dump() << " at " << at[i];
    }
  }
}

TEST(KerasOptimizers, OptionsThatDoNotFitAreRefused) {
  using namespace optimizers;
  EXPECT_THROW(Optimizer("adamm"), errors::InvalidArgument);
  EXPECT_EQ(Optimizer("Ftrl").name(), "ftrl");
  EXPECT_THROW(SGD(0.1, {.clipnorm = 1, .clipvalue = 1}),
               errors::InvalidArgument);
  EXPECT_THROW(SGD(0.1, {.weight_decay = -1}), errors::InvalidArgument);
  EXPECT_THROW(Adam(0.1, {.ema_momentum = 2}), errors::InvalidArgument);
  EXPECT_THROW(Adam(-0.1), errors::InvalidArgument);
  EXPECT_THROW(schedules::PiecewiseConstantDecay({3, 2}, {1, 2, 3}),
               errors::InvalidArgument);
  EXPECT_THROW(schedules::CosineDecay(0.1, 0), errors::InvalidArgument);
  const SGD scheduled(schedules::ExponentialDecay(0.1, 10, 0.5));
  EXPECT_THROW(scheduled.set_learning_rate(1), errors::FailedPrecondition);
  const SGD settable(0.1);
  settable.set_learning_rate(0.25);
  EXPECT_EQ(settable.learning_rate().value().item<float>(), 0.25f);
}

TEST(KerasOptimizers, ExcludedVariablesDoNotDecay) {
  for (const bool adam : {false, true}) {
    const Optimizer o = adam ? Optimizer(AdamW(0.1, {.weight_decay = 0.5}))
                             : Optimizer(SGD(0.1, {.weight_decay = 0.5}));
    const Variable a(ones({2}), {.name = "kernel"});
    const Variable b(ones({2}), {.name = "bias"});
    const Variable c(ones({2}), {.name = "other"});
    o.exclude_from_weight_decay({c}, {"bias"});
    const Tensor zero = zeros({2});
    o.apply_gradients({zero, zero, zero}, {a, b, c});
    EXPECT_NEAR(a.value().to_vector<float>()[0], 0.95, 1e-6);
    EXPECT_EQ(b.value().to_vector<float>()[0], 1);
    EXPECT_EQ(c.value().to_vector<float>()[0], 1);
  }
}

// y = w x, from w = 0, on one sample of x = 1, y = 1: the gradient is
// 2 (w - 1).
Sequential one_weight(Optimizer optimizer) {
  auto model =
      Sequential({InputLayer({1}),
                  Dense(1, {.use_bias = false,
                            .kernel_initializer = initializers::Zeros()})});
  model.compile({.optimizer = std::move(optimizer), .loss = "mse"});
  return model;
}

TEST(KerasOptimizers, AccumulationInFitEqualsALargerBatch) {
  const Tensor x = constant(std::vector<float>{1, 2, 3, 4}, {4, 1});
  auto small = one_weight(SGD(0.01, {.gradient_accumulation_steps = 2}));
  auto large = one_weight(SGD(0.01));
  small.fit(x, x, {.batch_size = 2, .verbose = 0, .shuffle = false});
  large.fit(x, x, {.batch_size = 4, .verbose = 0, .shuffle = false});
  EXPECT_NEAR(small.get_weights()[0].item<float>(),
              large.get_weights()[0].item<float>(), 1e-6);
}

TEST(KerasOptimizers, AveragesReplaceWeightsAtTheEndOfFit) {
  auto model = one_weight(SGD(0.25, {.use_ema = true, .ema_momentum = 0.5}));
  const Tensor x = ones({1, 1});
  Tensors before, after;
  const Callback look{.on_train_batch_end = [&](Model& m, int64_t) {
    before = m.get_weights();
    m.optimizer().swap_averages(m.trainable_variables());
    after = m.get_weights();
    m.optimizer().swap_averages(m.trainable_variables());
  }};
  // w: 0.5, 0.75; its average 0.5, 0.625.
  model.fit(x, x, {.epochs = 2, .verbose = 0, .callbacks = {look}});
  EXPECT_NEAR(before[0].item<float>(), 0.75, 1e-6);
  EXPECT_NEAR(after[0].item<float>(), 0.625, 1e-6);
  EXPECT_NEAR(model.get_weights()[0].item<float>(), 0.625, 1e-6);
}

TEST(KerasOptimizers, ASchedulesRateIsThatOfTheStep) {
  auto model = one_weight(
      SGD(optimizers::schedules::PiecewiseConstantDecay({0}, {0.25, 0.5})));
  const Tensor x = ones({1, 1});
  // Step 0 at 0.25: w = 0.5; then at 0.5: w = 1.
  model.fit(x, x, {.epochs = 2, .verbose = 0});
  EXPECT_NEAR(model.get_weights()[0].item<float>(), 1, 1e-6);
  EXPECT_EQ(model.optimizer().learning_rate().value().item<float>(), 0.5f);
  EXPECT_EQ(model.num_train_traces(), 1);
}

TEST(KerasOptimizers, LossScaleHalvesOnInfinityAndGrows) {
  const LossScaleOptimizer o(SGD(0.5),
                             {.initial_scale = 8, .dynamic_growth_steps = 2});
  const Variable v(constant(1.f));
  const auto scale = [&] { return o.scale_loss(constant(1.f)).item<float>(); };
  const auto step = function([&](const Tensor& g) {
    o.apply_gradients({g}, {v});
    return Tensor(v.value());
  });
  EXPECT_EQ(scale(), 8);
  EXPECT_EQ(step(constant(4.f)).item<float>(), 0.75f);  // 1 - 0.5 * 4 / 8
  EXPECT_EQ(scale(), 8);
  EXPECT_EQ(step(constant(4.f)).item<float>(), 0.5f);
  EXPECT_EQ(scale(), 16);  // two good steps
  EXPECT_EQ(step(constant(INFINITY)).item<float>(), 0.5f);
  EXPECT_EQ(scale(), 8);
  EXPECT_EQ(step(constant(NAN)).item<float>(), 0.5f);
  EXPECT_EQ(scale(), 4);
  EXPECT_EQ(step(constant(2.f)).item<float>(), 0.25f);
  // Two steps were skipped, which Keras does not count.
  EXPECT_EQ(o.iterations().value().item<int64_t>(), 3);
  // In fit the loss that is logged is not scaled.
  auto model = one_weight(LossScaleOptimizer(SGD(0.25)));
  const Tensor x = ones({1, 1});
  const History h = model.fit(x, x, {.verbose = 0});
  EXPECT_NEAR(h.history.at("loss")[0], 1, 1e-6);
  EXPECT_NEAR(model.get_weights()[0].item<float>(), 0.5, 1e-6);
}

std::vector<float> weights_after_fit(const Optimizer& optimizer) {
  random::set_seed(4);
  auto model =
      Sequential({InputLayer({3}), Dense(4, {.activation = "tanh"}), Dense(1)});
  model.compile({.optimizer = optimizer, .loss = "mse"});
  const Tensor x = numbers({16, 3});
  const Tensor y = math::reduce_sum(x, {.axis = {{1}}, .keepdims = true});
  model.fit(x, y,
            {.epochs = 3, .batch_size = 8, .verbose = 0, .shuffle = false});
  std::vector<float> all;
  for (const Tensor& w : model.get_weights()) {
    for (float v : w.to_vector<float>()) all.push_back(v);
  }
  return all;
}

void strategy_equals_one_device() {
  const auto devices = cpus(2);
  for (const char* name :
       {"all options", "lamb", "lion", "adafactor", "ftrl"}) {
    const auto optimizer = [&] {
      if (std::string(name) != "all options") return Optimizer(name);
      return Optimizer(Adam(
          optimizers::schedules::CosineDecay(0.1, 10),
          {.weight_decay = 0.01, .global_clipnorm = 0.5, .use_ema = true}));
    };
    std::vector<float> one = weights_after_fit(optimizer()), two;
    {
      const distribute::MirroredStrategy strategy({.devices = devices});
      const auto scope = strategy.scope();
      two = weights_after_fit(optimizer());
    }
    fresh_process::check(one.size() == two.size(), name);
    for (size_t i = 0; i < one.size(); ++i) {
      fresh_process::check(std::abs(one[i] - two[i]) < 1e-4, name);
    }
  }
}

TEST(KerasOptimizers, StrategiesGiveWhatOneDeviceGives) {
  IN_A_FRESH_PROCESS(strategy_equals_one_device());
}

}  // namespace
}  // namespace berth::keras
