// Options of fit, evaluate and predict; names; steps of a model's own; where
// fit is.

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

using Vector = std::vector<float>;

// y = w x without training: w stays `w`.
Sequential scale_model(double w, CompileOptions options) {
  auto model =
      Sequential({Dense(1, {.use_bias = false,
                            .kernel_initializer = initializers::Constant(w)})});
  options.optimizer = SGD(0);
  model.compile(std::move(options));
  return model;
}

std::string fit_error(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const errors::Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(FitOptions, ValidationSplitTakesTheLastSamplesBeforeShuffling) {
  auto model = scale_model(1, {.loss = "mse"});
  // Errors 1, 1, 1, 1, then 3, 5: 34 / 2.
  const Tensor x = constant(Vector{1.f, 1.f, 1.f, 1.f, 3.f, 5.f}, {6, 1});
  const History h =
      model.fit(x, zeros({6, 1}), {.verbose = 0, .validation_split = 0.34});
  // Keras: int(6 * (1 - 0.34)) = 3 are trained on.
  EXPECT_NEAR(h.history.at("loss")[0], 1, 1e-6);
  EXPECT_NEAR(h.history.at("val_loss")[0], (1 + 9 + 25) / 3.0, 1e-5);
  expect_has(fit_error([&] {
               model.fit(x, x, {.verbose = 0, .validation_split = 0.9});
             }),
             "leaves 0 to train on");
  expect_has(fit_error([&] {
               model.fit(x, x, {.verbose = 0, .validation_split = 1.5});
             }),
             "validation_split is 1.5");
}

TEST(FitOptions, ValidationFreqSkipsEpochs) {
  auto model = scale_model(1, {.loss = "mse"});
  const Tensor x = ones({4, 1});
  int tests = 0;
  const History h =
      model.fit(x, x,
                {.epochs = 5,
                 .verbose = 0,
                 .callbacks = {{.on_test_begin = [&](Model&) { ++tests; }}},
                 .validation_data = {x, zeros({4, 1})},
                 .validation_freq = 2});
  EXPECT_EQ(tests, 2);  // epochs 1 and 3
  EXPECT_EQ(h.history.at("val_loss"), (std::vector<double>{1, 1}));
  EXPECT_EQ(h.history.at("loss").size(), 5u);
}

TEST(FitOptions, StepsPerEpochGoesOnWhereTheLastEpochEndedUntilTheDataEnd) {
  auto model = scale_model(1, {.loss = "mse"});
  // Batches with errors 0, 1, 2, 3, 4.
  const Tensor x = constant(Vector{0.f, 1.f, 2.f, 3.f, 4.f}, {5, 1});
  const auto batches =
      data::Dataset::from_tensor_slices({x, zeros({5, 1})}).batch(1);
  // As in Keras: an epoch that runs out of data is over, and says so.
  testing::internal::CaptureStderr();
  const History h =
      model.fit(batches, {.epochs = 4, .verbose = 0, .steps_per_epoch = 3});
  expect_has(testing::internal::GetCapturedStderr(),
             "ended after 2 of the 3 steps of epoch 2");
  const auto& loss = h.history.at("loss");
  EXPECT_NEAR(loss[0], (0 + 1 + 4) / 3.0, 1e-6);
  EXPECT_NEAR(loss[1], (9 + 16) / 2.0, 1e-5);
  EXPECT_NEAR(loss[2], (0 + 1 + 4) / 3.0, 1e-5);
  EXPECT_NEAR(loss[3], (9 + 16) / 2.0, 1e-5);
  // Endless data need it.
  EXPECT_EQ(model.fit(batches.repeat(), {.verbose = 0, .steps_per_epoch = 7})
                .history.at("loss")
                .size(),
            1u);
  EXPECT_NEAR(model.evaluate(batches.repeat(), {.steps = 2}).at("loss"), 0.5,
              1e-6);
}

TEST(FitOptions, SampleAndClassWeightsAreFactorsOfTheLoss) {
  auto model = scale_model(1, {.loss = "mse"});
  const Tensor x = constant(Vector{1.f, 2.f, 3.f}, {3, 1});
  const Tensor y = zeros({3, 1});
  const Tensor w = constant(Vector{1.f, 0.f, 2.f}, {3});
  const double want = (1 * 1 + 0 * 4 + 2 * 9) / 3.0;
  const auto once = [](const Model& m, const History& h) {
    static_cast<void>(m);
    return h.history.at("loss")[0];
  };
  EXPECT_NEAR(once(model, model.fit(x, y, {.verbose = 0, .sample_weight = w})),
              want, 1e-5);
  // As a third component, [n] or [n, 1].
  for (const Tensor& third : {w, reshape(w, {3, 1})}) {
    const auto d = data::Dataset::from_tensor_slices({x, y, third}).batch(3);
    EXPECT_NEAR(once(model, model.fit(d, {.verbose = 0})), want, 1e-5);
    EXPECT_NEAR(model.evaluate(d).at("loss"), want, 1e-5);
  }
  EXPECT_NEAR(model.evaluate(x, y, {.sample_weight = w}).at("loss"), want,
              1e-5);
  EXPECT_NEAR(model.train_on_batch(x, y, {.sample_weight = w}).item<float>(),
              want, 1e-5);
  EXPECT_NEAR(model.test_on_batch(x, y, {.sample_weight = w}).item<float>(),
              want, 1e-5);
  EXPECT_NEAR(model.test_on_batch(x, y).item<float>(), 14 / 3.0, 1e-5);

  // Labels 0, 2, 5: class 2 counts three times, 5 is in no table.
  const Tensor labels = constant(Vector{0.f, 2.f, 5.f}, {3, 1});
  const auto loss_with = [&](const FitOptions& o) {
    return once(model, model.fit(x, labels, o));
  };
  EXPECT_NEAR(loss_with({.verbose = 0, .class_weight = {{2, 3.0}}}),
              (1 * 1 + 3 * 0 + 1 * 4) / 3.0, 1e-5);
  EXPECT_NEAR(loss_with({.verbose = 0, .class_weight = {{0, 5.0}}}),
              (5 * 1 + 0 + 4) / 3.0, 1e-5);
  EXPECT_NEAR(
      loss_with({.verbose = 0, .sample_weight = w, .class_weight = {{0, 5.0}}}),
      (5 * 1 * 1 + 0 + 2 * 4) / 3.0, 1e-5);
  EXPECT_NEAR(loss_with({.verbose = 0}), 5 / 3.0, 1e-5);
  expect_has(fit_error([&] {
               loss_with({.verbose = 0, .class_weight = {{0, -1.0}}});
             }),
             "class_weight of class 0 is -1");
}

TEST(FitOptions, ClassWeightsOfOneHotTargetsAreThoseOfTheirClass) {
  auto model = Sequential({Dense(
      2, {.use_bias = false, .kernel_initializer = initializers::Zeros()})});
  model.compile(
      {.optimizer = SGD(0),
       .loss = losses::CategoricalCrossentropy({.from_logits = true})});
  const Tensor y = constant({{1.f, 0.f}, {0.f, 1.f}, {0.f, 1.f}});
  const History h =
      model.fit(ones({3, 4}), y, {.verbose = 0, .class_weight = {{1, 4.0}}});
  EXPECT_NEAR(h.history.at("loss")[0], std::log(2.0) * (1 + 4 + 4) / 3, 1e-5);
}

// Two inputs a, b; outputs sum = a + b and double = 2 a.
Model two_by_two() {
  const auto a = Input({1}, {.name = "a"}), b = Input({1}, {.name = "b"});
  const auto sum = Add({.name = "sum"})({a, b});
  const auto scaled = Dense(1, {.use_bias = false,
                                .kernel_initializer = initializers::Constant(2),
                                .name = "double"})(a);
  return {{a, b}, {sum, scaled}};
}

TEST(FitOptions, InputsOutputsLossesAndMetricsGoByName) {
  Model model = two_by_two();
  model.compile({.optimizer = SGD(0),
                 .losses = {{"double", "mae"}, {"sum", "mse"}},
                 .loss_weights = {{"double", 10.0}},
                 .metrics_by_output = {{"double", {"mse"}}}});
  const Tensor a = constant({{1.f}, {2.f}}), b = constant({{3.f}, {4.f}});
  const Tensor zero = zeros({2, 1});
  // sum is 4, 6; double 2, 4.
  const Logs logs =
      model.evaluate({{"b", b}, {"a", a}}, {{"double", zero}, {"sum", zero}});
  EXPECT_NEAR(logs.at("sum_loss"), (16 + 36) / 2.0, 1e-5);
  EXPECT_NEAR(logs.at("double_loss"), 3, 1e-5);
  EXPECT_NEAR(logs.at("loss"), 26 + 30, 1e-4);
  EXPECT_NEAR(logs.at("double_mse"), (4 + 16) / 2.0, 1e-5);
  const History h =
      model.fit({{"a", a}, {"b", b}}, {{"sum", zero}, {"double", zero}},
                {.verbose = 0,
                 .validation_data = {{{"a", zero}, {"b", zero}},
                                     {{"sum", zero}, {"double", zero}}}});
  EXPECT_NEAR(h.history.at("loss")[0], 56, 1e-4);
  EXPECT_NEAR(h.history.at("val_loss")[0], 0, 1e-6);
  const Tensors y = model.predict({{"b", b}, {"a", a}});
  EXPECT_EQ(y[0].to_vector<float>(), (Vector{4, 6}));
  EXPECT_EQ(y[1].to_vector<float>(), (Vector{2, 4}));

  expect_has(fit_error([&] {
               model.predict({{"a", a}, {"c", b}});
             }),
             "\"c\" is unknown (fit_options_test.cc:");
  expect_has(fit_error([&] { model.predict({{"a", a}}); }), "\"b\" is missing");
  expect_has(fit_error([&] {
               model.compile({.losses = {{"triple", "mse"}}});
             }),
             "losses name an output \"triple\"");
}

TEST(FitOptions, AnOutputWithoutALossNeedsNoTarget) {
  Model model = two_by_two();
  model.compile({.optimizer = SGD(0.1), .losses = {{"double", "mse"}}});
  const Tensor a = ones({4, 1});
  const History h = model.fit({{"a", a}, {"b", a}}, {{"double", a}},
                              {.epochs = 30, .verbose = 0});
  EXPECT_LT(h.history.at("loss").back(), 1e-3);
  EXPECT_EQ(h.history.count("sum_loss"), 0u);
  // In a dataset as well, with weights for it.
  const auto d = data::Dataset::from_tensor_slices({a, a, a, a}).batch(4);
  EXPECT_LT(model.evaluate(d).at("loss"), 1e-3);
}

TEST(FitOptions, PredictTakesDatasetsAndCallsHooks) {
  auto model = scale_model(3, {.loss = "mse"});
  const Tensor x = constant(Vector{1.f, 2.f, 3.f, 4.f, 5.f}, {5, 1});
  const auto d = data::Dataset::from_tensor_slices({x, x}).batch(2);
  std::string seen;
  const Callback hooks{
      .on_predict_begin = [&](Model&) { seen += "<"; },
      .on_predict_end = [&](Model&) { seen += ">"; },
      .on_predict_batch_begin = [&](Model&,
                                    int64_t i) { seen += std::to_string(i); },
      .on_predict_batch_end =
          [&](Model&, int64_t, const Tensors& y) {
            seen += "(" + std::to_string(y[0].shape()[0]) + ")";
          }};
  EXPECT_EQ(model.predict(d, {.callbacks = {hooks}})[0].to_vector<float>(),
            (Vector{3, 6, 9, 12, 15}));
  EXPECT_EQ(seen, "<0(2)1(2)2(1)>");
  EXPECT_EQ(model.predict(d.repeat(), {.steps = 1})[0].to_vector<float>(),
            (Vector{3, 6}));
  EXPECT_EQ(model.predict_on_batch(x)[0].to_vector<float>().back(), 15);
}

// Trains only the bias of its layer, on |y - y_pred|, and logs two figures.
class BiasOnly : public ModelBase {
 public:
  BiasOnly() : ModelBase("bias_only") {}
  Tensors call(const Tensors& x, bool) override { return {dense_(x[0])}; }

  StepLogs train_step(const StepData& data) override {
    GradientTape tape;
    const Tensor y = forward(data.x, true)[0];
    const Tensor loss = math::reduce_mean(math::abs(y - data.y[0]));
    const std::vector<Variable> bias = {dense_.trainable_variables()[1]};
    optimizer().apply_gradients(tape.gradient(loss, bias), bias);
    return {{"distance", loss}, {"batch", constant(7.f)}};
  }
  Tensors predict_step(const Tensors& x) override {
    return {forward(x, false)[0] * 100};
  }

 private:
  const Layer dense_ =
      track(Dense(1, {.kernel_initializer = initializers::Ones()}));
};

TEST(FitOptions, AModelMayHaveStepsOfItsOwn) {
  auto model = Model::make<BiasOnly>();
  model.compile({.optimizer = SGD(0.5), .loss = "mse"});
  const Tensor x = zeros({4, 1}), y = ones({4, 1}) * 2.0;
  const History h =
      model.fit(x, y, {.epochs = 4, .batch_size = 2, .verbose = 0});
  // The bias moves by 0.5 a step, from 0 to 2; then the sign of 0 is 0.
  EXPECT_EQ(h.history.at("distance"),
            (std::vector<double>{(2 + 1.5) / 2, (1 + 0.5) / 2, 0, 0}));
  EXPECT_EQ(h.history.at("batch")[0], 7);
  EXPECT_EQ(h.history.count("loss"), 0u);
  EXPECT_EQ(model.num_train_traces(), 1);
  EXPECT_EQ(model.get_weights()[0].item<float>(), 1);  // the kernel
  // test_step is the usual one.
  const Logs logs = model.evaluate(x, y + 1.0);
  EXPECT_NEAR(logs.at("loss"), 1, 1e-6);
  EXPECT_EQ(logs.count("distance"), 0u);
  EXPECT_EQ(model.predict(x).to_vector<float>()[0], 200);
}

TEST(FitOptions, RunEagerlyGivesTheSameWithoutATrace) {
  const auto losses_of = [](bool eagerly) {
    random::set_seed(5);
    clear_session();
    auto model = Sequential({Dense(8, {.activation = "tanh"}), Dense(1)});
    model.compile({.optimizer = Adam(0.05),
                   .loss = "mse",
                   .metrics = {"mse"},
                   .run_eagerly = eagerly});
    const Tensor x = random::normal({20, 3});
    const Tensor y = math::reduce_sum(x, {.axis = {{1}}, .keepdims = true});
    const History h =
        model.fit(x, y, {.epochs = 3, .batch_size = 8, .verbose = 0});
    EXPECT_EQ(model.num_train_traces(), eagerly ? 0 : 2);
    return h.history.at("mse");
  };
  const auto compiled = losses_of(false), eager = losses_of(true);
  for (size_t i = 0; i < compiled.size(); ++i) {
    EXPECT_NEAR(compiled[i], eager[i], 1e-4 * compiled[i]);
  }
}

TEST(FitOptions, WeightsSharedBetweenLayersAndModelsTrainOnce) {
  // y = w (x1 + x2) through one layer used twice, inside of a model in a model.
  const Layer shared = Dense(
      1, {.use_bias = false, .kernel_initializer = initializers::Zeros()});
  const auto inner_in = Input({1});
  const Model inner(inner_in, shared(inner_in));
  const auto a = Input({1}), b = Input({1});
  Model model({a, b}, {Add()({inner(a), shared(b)})});
  EXPECT_EQ(model.trainable_variables().size(), 1u);
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  const Tensor x = ones({1, 1});
  // d/dw (2 w - 4)^2 at 0 is 2 * -4 * 2.
  model.fit(Tensors{x, x}, Tensors{x * 4.0}, {.verbose = 0});
  EXPECT_NEAR(shared.get_weights()[0].item<float>(), 1.6, 1e-5);
  EXPECT_NEAR(inner.get_weights()[0].item<float>(), 1.6, 1e-5);
}

TEST(FitOptions, TrainableIsReadAtCompile) {
  const Layer first = Dense(1, {.kernel_initializer = initializers::Ones()});
  auto model = Sequential({first, Dense(1)});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  const Tensor x = ones({2, 1});
  model.fit(x, x * 3.0, {.verbose = 0});
  const auto kernel = [&] { return first.get_weights()[0].item<float>(); };
  const float before = kernel();
  EXPECT_NE(before, 1);
  first.set_trainable(false);
  // Another batch shape: traced anew, but not compiled.
  model.fit(ones({3, 1}), ones({3, 1}) * 3.0, {.verbose = 0});
  const float after = kernel();
  EXPECT_NE(after, before);
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  model.fit(x, x * 3.0, {.verbose = 0});
  EXPECT_EQ(kernel(), after);
}

class Recorder : public CallbackBase {
 public:
  explicit Recorder(std::string* seen) : CallbackBase("recorder"), s_(*seen) {}
  void on_train_begin(Model&) override { s_ += "<"; }
  void on_train_end(Model&) override { s_ += ">"; }
  void on_epoch_begin(Model& m, int epoch) override {
    s_ += "e" + std::to_string(epoch) + "of" +
          std::to_string(m.fit_loop()->epochs());
  }
  void on_epoch_end(Model& m, int, Logs& logs) override {
    EXPECT_EQ(m.fit_loop()->history().history.at("loss").back(),
              logs.at("loss"));
    EXPECT_EQ(m.fit_loop()->position().batch, 0);
    logs["extra"] = 4;
    s_ += "E";
  }
  void on_train_batch_begin(Model&, int64_t b) override {
    s_ += "b" + std::to_string(b);
  }
  void on_train_batch_end(Model& m, int64_t b) override {
    EXPECT_EQ(m.fit_loop()->position().batch, b + 1);
    EXPECT_EQ(m.fit_loop()->element()[0].shape()[0], 2);
    s_ += "B";
  }
  void on_test_begin(Model&) override { s_ += "["; }
  void on_test_batch_begin(Model&, int64_t) override { s_ += "t"; }
  void on_test_batch_end(Model&, int64_t) override { s_ += "T"; }
  void on_test_end(Model&, const Logs& logs) override {
    EXPECT_EQ(logs.count("loss"), 1u);
    s_ += "]";
  }

 private:
  std::string& s_;
};

TEST(FitOptions, CallbacksAreClassesOrTablesAndSeeWhereFitIs) {
  auto model = scale_model(1, {.loss = "mse"});
  const Tensor x = ones({4, 1});
  std::string seen;
  double extra = 0;
  const Callback table{.on_epoch_end = [&](Model&, int, const Logs& logs) {
    extra = logs.at("extra");
  }};
  const History h =
      model.fit(x, x,
                {.epochs = 4,
                 .batch_size = 2,
                 .verbose = 0,
                 .callbacks = {make_callback<Recorder>(&seen), table},
                 .validation_data = {x, x},
                 .initial_epoch = 2});
  EXPECT_EQ(seen, "<e2of4b0Bb1B[tTtT]Ee3of4b0Bb1B[tTtT]E>");
  EXPECT_EQ(extra, 4);
  EXPECT_EQ(h.history.at("extra"), (std::vector<double>{4, 4}));
  EXPECT_EQ(h.epoch, (std::vector<int>{2, 3}));
  EXPECT_EQ(model.fit_loop(), nullptr);
}

// Stopped after `stop_after` steps, if any, and gone on with in another model.
std::vector<float> trained(int stop_after, std::vector<double>* losses) {
  const auto batches_of = [] {
    random::set_seed(1);
    const Tensor x = random::normal({20, 3});
    const Tensor y = math::reduce_sum(x, {.axis = {{1}}, .keepdims = true});
    return data::Dataset::from_tensor_slices({x, y})
        .shuffle(20, {.seed = 9})
        .batch(4);
  };
  const auto model_of = [] {
    random::set_seed(2);
    auto model = Sequential({Dense(4, {.activation = "tanh"}), Dense(1)});
    model.build({-1, 3});
    model.compile({.optimizer = SGD(0.05), .loss = "mse"});
    return model;
  };
  auto model = model_of();
  FitPosition at;
  Tensors weights;
  std::vector<double> sums;
  Callback stop{.on_train_batch_end = [&](Model& m, int64_t) {
    if (m.fit_loop()->total_steps() != stop_after) return;
    at = m.fit_loop()->position();
    weights = m.get_weights();
    for (const Metric& metric : m.metrics()) {
      sums.push_back(metric.total().value().item<double>());
      sums.push_back(metric.count().value().item<double>());
    }
    m.stop_training();
  }};
  History h =
      model.fit(batches_of(), {.epochs = 3, .verbose = 0, .callbacks = {stop}});
  if (stop_after > 0) {
    model = model_of();
    model.set_weights(weights);
    const History before = h;
    const Callback go_on{.on_train_begin = [&](Model& m) {
      size_t i = 0;
      for (const Metric& metric : m.metrics()) {
        metric.total().assign(constant(static_cast<float>(sums[i++])));
        metric.count().assign(constant(static_cast<float>(sums[i++])));
      }
      m.fit_loop()->start_at(at);
    }};
    h = model.fit(batches_of(),
                  {.epochs = 3, .verbose = 0, .callbacks = {go_on}});
  }
  *losses = h.history.at("loss");
  std::vector<float> all;
  for (const Tensor& w : model.get_weights()) {
    for (float v : w.to_vector<float>()) all.push_back(v);
  }
  return all;
}

TEST(FitOptions, GoesOnInTheMiddleOfAnEpochAsIfItHadNotStopped) {
  std::vector<double> whole, rest;
  const auto want = trained(0, &whole);
  for (int stop_after : {1, 5, 7, 10, 14}) {
    EXPECT_EQ(trained(stop_after, &rest), want) << stop_after;
    ASSERT_FALSE(rest.empty());
    // 5 steps are an epoch; after the last of one its end is still to come.
    EXPECT_EQ(rest.size(), static_cast<size_t>(3 - (stop_after - 1) / 5));
    for (size_t i = 0; i < rest.size(); ++i) {
      EXPECT_EQ(rest[rest.size() - 1 - i], whole[whole.size() - 1 - i])
          << stop_after;
    }
  }
  auto model = scale_model(1, {.loss = "mse"});
  const Tensor x = ones({2, 1});
  const Callback late{.on_epoch_begin = [](Model& m, int) {
    m.fit_loop()->start_at({1, 0});
  }};
  expect_has(
      fit_error([&] { model.fit(x, x, {.verbose = 0, .callbacks = {late}}); }),
      "start_at(epoch 1, batch 0) after on_train_begin");
}

TEST(FitOptions, DatasetsWithNamesFindInputsAndOutputs) {
  const Initializer one = initializers::Ones();
  const KerasTensor a = Input({1}, {.name = "a"}),
                    b = Input({1}, {.name = "b"});
  const KerasTensor twice = Rescaling(2, {.name = "twice"})(a);
  const KerasTensor price =
      Dense(1, {.use_bias = false, .kernel_initializer = one, .name = "price"})(
          Subtract()({twice, b}));
  const KerasTensor sold = Rescaling(1, {.name = "sold"})(b);
  Model model({a, b}, {price, sold});
  model.compile(
      {.optimizer = SGD(0), .losses = {{"sold", "mae"}, {"price", "mae"}}});
  const auto column = [](float v) { return fill({2, 1}, v, float32); };
  // 2 * 5 - 3 = 7 and 3.
  const auto named = [&](std::vector<std::pair<std::string, Tensor>> list) {
    Tensors all;
    data::Names names;
    for (const auto& [name, t] : list) {
      all.push_back(t);
      names.push_back(name);
    }
    return data::Dataset::from_tensor_slices(
               data::Element(all, std::make_shared<const data::Names>(names)))
        .batch(2);
  };
  const auto d = named({{"sold", column(2)},
                        {"b", column(3)},
                        {"price", column(4)},
                        {"a", column(5)}});
  const History h = model.fit(d, {.verbose = 0, .validation_data = d});
  EXPECT_NEAR(h.history.at("price_loss")[0], 3, 1e-6);
  EXPECT_NEAR(h.history.at("sold_loss")[0], 1, 1e-6);
  EXPECT_NEAR(h.history.at("val_price_loss")[0], 3, 1e-6);
  EXPECT_NEAR(model.evaluate(d).at("price_loss"), 3, 1e-6);
  EXPECT_EQ(model.predict(d)[0].to_vector<float>(), (Vector{7, 7}));
  // Names of other things: in order.
  const auto other = named({{"left", column(5)}, {"right", column(3)}});
  EXPECT_EQ(model.predict(other)[0].to_vector<float>(), (Vector{7, 7}));
  expect_has(fit_error([&] {
               model.predict(named({{"b", column(3)}, {"c", column(3)}}));
             }),
             "has an input \"a\", too");
}

TEST(FitOptions, WeightedMetricsCountSampleAndClassWeights) {
  auto model = scale_model(
      1, {.loss = "mse", .metrics = {"mse"}, .weighted_metrics = {"mse"}});
  const Tensor x = constant(Vector{1.f, 2.f, 3.f}, {3, 1}), y = zeros({3, 1});
  const Tensor w = constant(Vector{1.f, 0.f, 3.f}, {3});
  // Squares 1, 4, 9.
  const History h = model.fit(x, y, {.verbose = 0, .sample_weight = w});
  EXPECT_NEAR(h.history.at("mse")[0], 14 / 3.0, 1e-5);
  EXPECT_NEAR(h.history.at("weighted_mse")[0], 28 / 4.0, 1e-5);
  EXPECT_NEAR(model.evaluate(x, y).at("weighted_mse"), 14 / 3.0, 1e-5);
  EXPECT_NEAR(model.evaluate(x, y, {.sample_weight = w}).at("weighted_mse"), 7,
              1e-5);
  const Tensor classes = constant(Vector{0.f, 1.f, 1.f}, {3, 1});
  // Errors 1, 1, 2, the last two twice.
  const History c =
      model.fit(x, classes, {.verbose = 0, .class_weight = {{1, 2.}}});
  EXPECT_NEAR(c.history.at("weighted_mse")[0], 11 / 5.0, 1e-5);
  EXPECT_NEAR(c.history.at("mse")[0], 2, 1e-5);
}

}  // namespace
}  // namespace berth::keras
