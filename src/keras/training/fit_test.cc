// fit on one device.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "berth/berth.h"
#include "device/device_manager.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

// Four points on y = 2 a - 3 b + 1.
struct Line {
  Tensor x = constant({{0.f, 0.f}, {1.f, 0.f}, {0.f, 1.f}, {1.f, 1.f}});
  Tensor y = constant({{1.f}, {3.f}, {-2.f}, {0.f}});
};

Loss sparse_from_logits() {
  return losses::SparseCategoricalCrossentropy({.from_logits = true});
}

TEST(Fit, FindsTheLineThroughPoints) {
  const Line line;
  auto model = Sequential({Dense(1)});
  model.compile({.optimizer = SGD(0.3), .loss = "mse"});
  const History history =
      model.fit(line.x, line.y, {.epochs = 300, .batch_size = 4, .verbose = 0});
  EXPECT_EQ(history.history.at("loss").size(), 300u);
  EXPECT_LT(history.history.at("loss").back(), 1e-6);
  const Tensors w = model.get_weights();
  EXPECT_NEAR(w[0].to_vector<float>()[0], 2, 1e-3);
  EXPECT_NEAR(w[0].to_vector<float>()[1], -3, 1e-3);
  EXPECT_NEAR(w[1].item<float>(), 1, 1e-3);
  EXPECT_EQ(model.num_train_traces(), 1);
}

TEST(Fit, TracesOncePerBatchShape) {
  auto model = Sequential({Dense(4, {.activation = "relu"}), Dense(3)});
  model.compile({.optimizer = "adam",
                 .loss = sparse_from_logits(),
                 .metrics = {"accuracy"}});
  const Tensor x = random::normal({10, 5});
  const Tensor y = constant({0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  const History h =
      model.fit(x, y, {.epochs = 5, .batch_size = 4, .verbose = 0});
  EXPECT_EQ(model.num_train_traces(), 2);  // 4 and the last 2
  EXPECT_EQ(h.history.at("accuracy").size(), 5u);
  EXPECT_GT(model.train_plan_info().regions, 0);
  // Forward, loss, gradient, update and metrics are in one plan.
  const std::string plan = model.train_plan_text("trace");
  for (const char* op : {"MatMul", "SparseSoftmaxCrossEntropyWithLogits",
                         "ResourceApplyAdam", "ArgMax", "AssignAdd"}) {
    expect_has(plan, op);
  }
}

// One epoch of batches of 3 and 1 by hand: the weight of 1 at rate 0 stays 1,
// so loss is the mean over samples, not over batches.
TEST(Fit, ReportsTheMeanOverSamples) {
  auto model =
      Sequential({Dense(1, {.use_bias = false, .kernel_initializer = "ones"})});
  model.compile({.optimizer = SGD(0), .loss = "mse", .metrics = {"mse"}});
  const Tensor x = constant({{1.f}, {1.f}, {1.f}, {3.f}});
  const Tensor y = zeros({4, 1});
  const History h = model.fit(x, y,
                              {.batch_size = 3,
                               .verbose = 0,
                               .validation_data = {x, y + 1.0},
                               .shuffle = false});
  EXPECT_NEAR(h.history.at("loss")[0], 3, 1e-6);  // (1 + 1 + 1 + 9) / 4
  EXPECT_NEAR(h.history.at("mse")[0], 3, 1e-6);
  EXPECT_NEAR(h.history.at("val_loss")[0], 1, 1e-6);  // (0 + 0 + 0 + 4) / 4
  const Logs logs = model.evaluate(x, y, {.batch_size = 3});
  EXPECT_NEAR(logs.at("loss"), 3, 1e-6);
}

TEST(Fit, AStepInsideATraceOfUnknownBatchCountsItsSamples) {
  auto model =
      Sequential({Dense(1, {.use_bias = false, .kernel_initializer = "ones"})});
  model.compile({.optimizer = SGD(0), .loss = "mse"});
  auto step =
      function([&](const Tensor& x,
                   const Tensor& y) { return model.train_on_batch(x, y); },
               {.input_signature = {{{-1, 1}, float32}, {{-1, 1}, float32}}});
  step(constant({{1.f}, {1.f}, {1.f}}), zeros({3, 1}));
  step(constant({{3.f}}), zeros({1, 1}));
  EXPECT_EQ(step.num_traces(), 1);
  EXPECT_NEAR(model.metrics_result().at("loss"), 3, 1e-6);
}

TEST(Fit, TakesADataset) {
  const Line line;
  auto model = Sequential({Dense(1)});
  model.compile({.optimizer = SGD(0.3), .loss = "mse"});
  const auto batches =
      data::Dataset::from_tensor_slices({line.x, line.y}).batch(2);
  const History h = model.fit(
      batches, {.epochs = 3, .verbose = 0, .validation_data = batches});
  EXPECT_EQ(h.epoch, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(h.history.at("val_loss").size(), 3u);
  EXPECT_THROW(model.fit(batches.repeat(), {.verbose = 0}),
               errors::InvalidArgument);
  EXPECT_THROW(model.fit(batches.take(0), {.verbose = 0}),
               errors::InvalidArgument);
}

TEST(Fit, ShufflesReproduciblyBySeed) {
  auto order = [](int64_t seed) {
    random::set_seed(seed);
    auto model = Sequential({Dense(3), Dense(1)});
    model.compile({.optimizer = SGD(0.01), .loss = "mse"});
    const Tensor x = random::normal({50, 4});
    const Tensor y = random::normal({50, 1});
    return model.fit(x, y, {.epochs = 3, .batch_size = 8, .verbose = 0})
        .history.at("loss");
  };
  EXPECT_EQ(order(3), order(3));
  EXPECT_NE(order(3), order(4));
}

TEST(Fit, CallbacksRunInOrderAndMayStop) {
  const Line line;
  auto model = Sequential({Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  std::string seen;
  const Callback callback{
      .on_train_begin = [&](Model&) { seen += "<"; },
      .on_train_end = [&](Model&) { seen += ">"; },
      .on_epoch_begin = [&](Model&,
                            int epoch) { seen += std::to_string(epoch) + "("; },
      .on_epoch_end =
          [&](Model& m, int epoch, const Logs& logs) {
            EXPECT_EQ(logs.count("loss"), 1u);
            seen += ")";
            if (epoch == 1) m.stop_training();
          },
      .on_train_batch_end =
          [&](Model& m, int64_t batch) {
            seen += std::to_string(batch);
            EXPECT_GT(m.metrics_result().at("loss"), 0);
          },
  };
  model.fit(
      line.x, line.y,
      {.epochs = 9, .batch_size = 2, .verbose = 0, .callbacks = {callback}});
  EXPECT_EQ(seen, "<0(01)1(01)>");
}

TEST(Fit, EarlyStoppingRestoresTheBestWeights) {
  random::set_seed(3);
  const Line line;
  auto model = Sequential({Dense(1)});
  // So large a rate that the loss grows from the start.
  model.compile({.optimizer = SGD(50), .loss = "mse"});
  model.build({-1, 2});
  Tensors after_first;
  const Callback keep{.on_epoch_end = [&](Model& m, int epoch, const Logs&) {
    if (epoch == 0) after_first = m.get_weights();
  }};
  const History h = model.fit(
      line.x, line.y,
      {.epochs = 50,
       .batch_size = 4,
       .verbose = 0,
       .callbacks = {keep,
                     callbacks::EarlyStopping({.monitor = "loss",
                                               .patience = 2,
                                               .restore_best_weights = true})},
       .shuffle = false});
  EXPECT_EQ(h.epoch.size(), 3u);
  EXPECT_EQ(model.get_weights()[0].to_vector<float>(),
            after_first[0].to_vector<float>());
}

TEST(Fit, EqualSlicesGiveEqualLossesAgain) {
  auto losses_of = [] {
    random::set_seed(1);
    auto model = Sequential({Dense(16, {.activation = "tanh"}), Dense(1)});
    model.compile({.optimizer = "adam", .loss = "mse", .slices = 4});
    const Tensor x = random::normal({64, 8}), y = random::normal({64, 1});
    return model.fit(x, y, {.epochs = 4, .batch_size = 16, .verbose = 0})
        .history.at("loss");
  };
  EXPECT_EQ(losses_of(), losses_of());
}

// Losses of a model whose layers were made on these devices.
std::vector<double> losses_on(const char* first, const char* second) {
  random::set_seed(2);
  clear_session();
  std::vector<Layer> layers;
  with_device(first, [&] {
    layers.push_back(Dense(16, {.activation = "relu"}));
    layers.push_back(BatchNormalization());
  });
  with_device(second, [&] { layers.push_back(Dense(2)); });
  auto model = Sequential(layers);
  model.compile({.optimizer = "adam", .loss = sparse_from_logits()});
  const auto on = device("/CPU:0");
  const Tensor x = random::normal({64, 8});
  const Tensor y =
      math::cast(math::reduce_sum(x, {.axis = {{1}}}) > 0.0, int32);
  const auto history =
      model.fit(x, y, {.epochs = 5, .batch_size = 16, .verbose = 0});
  EXPECT_NE(model.weights()[0].device().find(first), std::string::npos);
  EXPECT_NE(model.weights().back().device().find(second), std::string::npos);
  EXPECT_EQ(model.num_train_traces(), 1);
  if (std::string(first) != second) {
    EXPECT_GE(model.train_plan_info().transfers, 2);
  }
  return history.history.at("loss");
}

TEST(Fit, LayersOnTwoDevicesTrainAsOnOne) {
  if (config::list_logical_devices("GPU").size() < 2) {
    GTEST_SKIP() << "runs with BERTH_SIM=GPUx2";
  }
  const auto alone = losses_on("CPU:0", "CPU:0");
  EXPECT_LT(alone.back(), alone.front());
  for (const auto& [a, b] :
       {std::pair("GPU:0", "GPU:1"), {"GPU:0", "CPU:0"}, {"CPU:0", "GPU:1"}}) {
    const auto split = losses_on(a, b);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(split[i], alone[i], 1e-5) << a << " " << b << " " << i;
    }
  }
}

TEST(Fit, BadInputsAreNamed) {
  auto model = Sequential({Dense(3, {.name = "first"}), Dense(2)});
  const Tensor x = ones({4, 5});
  EXPECT_THROW(model.fit(x, ones({4})), errors::FailedPrecondition);
  EXPECT_THROW(model.train_plan_info(), errors::FailedPrecondition);
  EXPECT_THROW(model.compile({.optimizer = "sgd"}), errors::InvalidArgument);
  model.compile({.optimizer = "sgd", .loss = sparse_from_logits()});
  const Tensor y = constant({0, 1, 0, 1});
  model.fit(x, y, {.verbose = 0});
  auto message = [&](auto&& f) {
    try {
      f();
    } catch (const errors::InvalidArgument& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  expect_has(message([&] {
               model.fit(ones({4, 6}), y, {.verbose = 0});
             }),
             "layer \"first\", fit_test.cc:");
  expect_has(message([&] {
               model.fit(ones({3, 5}), y, {.verbose = 0});
             }),
             "x is [3,5], y is [4]");
  expect_has(message([&] { model.fit(x, y, {.epochs = 0}); }), "epochs is 0");
  expect_has(message([&] { model.fit(x, y, {.batch_size = 0}); }),
             "batch_size is 0");
  expect_has(message([&] { model.predict(Tensor()); }), "empty tensor");
  auto no_weights = Sequential({Flatten()});
  no_weights.compile({.optimizer = "sgd", .loss = "mse"});
  expect_has(message([&] { no_weights.fit(x, x, {.verbose = 0}); }),
             "no trainable weights");
}

TEST(Fit, ABatchWithoutExamplesIsRefusedWhereverItStands) {
  auto model = Sequential({Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const std::vector<int64_t> sizes{4, 0, 4};
  const auto batches = data::Dataset::from_generator(
      [&sizes] {
        return [&sizes, i = size_t{0}]() mutable -> std::optional<Tensors> {
          if (i == sizes.size()) return std::nullopt;
          const int64_t n = sizes[i++];
          return Tensors{ones({n, 2}), ones({n, 1})};
        };
      },
      {{{-1, 2}, float32, {}}, {{-1, 1}, float32, {}}});
  const auto refuses = [](auto&& call) {
    try {
      call();
      ADD_FAILURE() << "an empty batch was taken";
    } catch (const errors::InvalidArgument& e) {
      expect_has(e.what(), "has no examples");
    }
  };
  refuses([&] { model.fit(batches, {.verbose = 0}); });
  EXPECT_FALSE(std::isnan(model.get_weights()[0].to_vector<float>()[0]));
  refuses([&] { model.evaluate(batches); });
}

TEST(Fit, ABadLabelIsNamedByTheRowOfTheCallersData) {
  const auto make = [] {
    auto model = Sequential({Dense(2)});
    model.compile({.optimizer = "sgd",
                   .loss = sparse_from_logits(),
                   .metrics = {"accuracy"}});
    return model;
  };
  const auto told = [](auto&& fn) {
    std::string message = "nothing thrown";
    try {
      fn();
    } catch (const errors::Error& e) {
      message = e.what();
    }
    for (Device* d : DeviceManager::get().devices()) d->reset_error();
    return message;
  };
  std::vector<int32_t> labels(50, 1);
  labels[37] = 9;
  const Tensor x = ones({50, 3}), y = constant(labels, {50});
  auto model = make();  // shuffles
  expect_has(told([&] { model.fit(x, y, {.batch_size = 4, .verbose = 0}); }),
             "fit: label 9 in row 37 of y (fit_test.cc:");
  model = make();
  expect_has(
      told([&] { model.evaluate(x, y, {.batch_size = 4, .verbose = 0}); }),
      "evaluate: label 9 in row 37 of y");
  model = make();
  const std::string m = told([&] {
    model.fit(data::Dataset::from_tensor_slices({x, y}).batch(4),
              {.verbose = 0});
  });
  // 37 = 9 * 4 + 1. An accelerator fails when later batches are on their way.
  const bool at_once = DeviceManager::get().default_device().runs_inline();
  expect_has(m, at_once ? "fit: label 9 in row 1 of batch 10 of epoch 1"
                        : "label 9 in row 1");
}

TEST(Fit, MoreSlicesThanThereCanBeAreRefusedByCompile) {
  auto model = Sequential({Dense(2)});
  try {
    model.compile({.loss = "mse", .slices = 64});
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    expect_has(e.what(), "slices is 64 (fit_test.cc:");
    expect_has(e.what(), "to 32");
  }
}

TEST(Fit, ALabelOutOfRangeIsAnErrorThatChangesNothing) {
  auto model = Sequential({Embedding(5, 3), GlobalAveragePooling1D(),
                           BatchNormalization(), Dense(2)});
  model.compile({.optimizer = "adam",
                 .loss = sparse_from_logits(),
                 .metrics = {"accuracy"}});
  const Tensor ids = reshape(constant({0, 1, 2, 3}), {2, 2}),
               labels = constant({0, 1});
  const FitOptions quiet{.verbose = 0, .shuffle = false};
  model.fit(ids, labels, quiet);
  const auto values = [&] {
    std::vector<Floats> all;
    for (const Tensor& w : model.get_weights()) {
      all.push_back(w.to_vector<float>());
    }
    return all;
  };
  const auto before = values();
  const auto fails = [&](auto&& fn, const char* text) {
    try {
      fn();
      FAIL();
    } catch (const errors::Error& e) {
      expect_has(e.what(), text);
      expect_has(e.what(), "fit_test.cc:");
    }
    EXPECT_EQ(values(), before);
    EXPECT_EQ(model.predict(ids).shape(), Shape({2, 2}));
  };
  const Tensor bad_labels = constant({0, 7}),
               bad_ids = reshape(constant({0, 1, 2, 5}), {2, 2});
  fails([&] { model.fit(ids, bad_labels, quiet); }, "0 <= label < 2");
  fails([&] { model.evaluate(ids, bad_labels, {.verbose = 0}); },
        "label 7 in row 1");
  fails([&] { model.fit(bad_ids, labels, quiet); }, "index 5");
  model.fit(ids, labels, quiet);
  EXPECT_NE(values(), before);
}

}  // namespace
}  // namespace berth::keras
