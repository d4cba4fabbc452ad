// fit under parameter servers is fit on one device when one worker trains, and
// learns when many do.

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "distribute/parameter_server/parameter_server_testing.h"
#include "io/temp_dir_testing.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::ServerTasks;
using io::testing::TempDir;

Sequential served_model() {
  random::set_seed(7);
  Sequential model({
      InputLayer({6}),
      Dense(16, {.activation = "relu"}),
      BatchNormalization(),
      Dropout(0.3),
      Dense(3),
  });
  model.compile(
      {.optimizer = Adam(0.01),
       .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
       .metrics = {"accuracy"}});
  return model;
}

Tensor thirds(int64_t n) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int32_t>(i % 3);
  return constant(std::span<const int32_t>(v), Shape{n});
}

// Rows by which their thirds can be told.
Tensor rows_of_thirds(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n * 6));
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t row = i / 6;
    v[i] = static_cast<float>(i * 37 % 101) * 0.01f +
           (row % 3 == i % 6 ? 1.0f : 0.0f);
  }
  return constant(std::span<const float>(v), Shape{n, 6});
}

TEST(ParameterServerFit, OneWorkerGivesTheBitsOfOneDevice) {
  const Tensor x = rows_of_thirds(22), y = thirds(22);
  const FitOptions options{.epochs = 3,
                           .batch_size = 8,
                           .verbose = 0,
                           .validation_data = {x, y},
                           .shuffle = false};
  Sequential alone = served_model();
  const History expected = alone.fit(x, y, options);

  ServerTasks tasks(1, 2,
                    {.variable_partitioner =
                         distribute::partitioners::FixedShardsPartitioner(2)});
  std::optional<Sequential> model;
  {
    const auto scope = tasks.strategy().scope();
    model.emplace(served_model());
  }
  const History got = model->fit(x, y, options);
  EXPECT_EQ(got.history, expected.history);
  ASSERT_EQ(model->weights().size(), alone.weights().size());
  for (size_t i = 0; i < alone.weights().size(); ++i) {
    EXPECT_EQ(model->weights()[i].value().to_vector<float>(),
              alone.weights()[i].value().to_vector<float>())
        << alone.weights()[i].name();
  }
  const EvaluateOptions quiet{.batch_size = 5, .verbose = 0};
  EXPECT_EQ(model->evaluate(x, y, quiet), alone.evaluate(x, y, quiet));
  EXPECT_EQ(model->predict(x).to_vector<float>(),
            alone.predict(x).to_vector<float>());
  const auto one_batch = [&](Sequential& m) {
    random::set_seed(3);
    return m.train_on_batch(x, y).item<float>();
  };
  EXPECT_EQ(one_batch(*model), one_batch(alone));
}

// Ends after so many batches; 0: trains to the end. Returns all weights.
std::vector<float> fit_with_backups(const std::string& folder, int batches) {
  const Tensor x = rows_of_thirds(44), y = thirds(44);
  ServerTasks tasks(1, 2);
  std::optional<Sequential> model;
  {
    const auto scope = tasks.strategy().scope();
    model.emplace(served_model());
  }
  const Callback dies{.on_train_batch_end = [&](Model&, int64_t) {
    if (--batches == 0) throw errors::Cancelled("killed");
  }};
  std::vector<Callback> callbacks = {dies};
  if (!folder.empty()) {
    callbacks.push_back(callbacks::ModelCheckpoint(
        folder + "/weights", {.save_weights_only = true, .save_freq = 1}));
    callbacks.push_back(
        callbacks::BackupAndRestore(folder + "/backup", {.save_freq = 1}));
  }
  const FitOptions options{
      .epochs = 2, .batch_size = 8, .verbose = 0, .callbacks = callbacks};
  if (batches == 0) {
    model->fit(x, y, options);
  } else {
    EXPECT_THROW(model->fit(x, y, options), errors::Cancelled);
    model->load_weights(folder + "/weights.safetensors");
  }
  std::vector<float> all;
  for (const Variable& v : model->weights()) {
    for (const float f : v.value().to_vector<float>()) all.push_back(f);
  }
  return all;
}

TEST(ParameterServerFit, ABackupWithinAnEpochHasTheWeightsOfItsBatch) {
  const std::vector<float> whole = fit_with_backups("", 0);
  const TempDir dir;
  const std::vector<float> first = fit_with_backups(dir.path(), 4);
  const std::vector<float> later = fit_with_backups(dir.path(), 5);
  EXPECT_NE(first, later) << "files of ModelCheckpoint";
  EXPECT_EQ(fit_with_backups(dir.path(), 0), whole);
}

TEST(ParameterServerFit, ManyWorkersLearn) {
  const Tensor x = rows_of_thirds(96), y = thirds(96);
  ServerTasks tasks(3, 2);
  std::optional<Sequential> model;
  {
    const auto scope = tasks.strategy().scope();
    model.emplace(served_model());
  }
  const History h =
      model->fit(x, y, {.epochs = 12, .batch_size = 8, .verbose = 0});
  EXPECT_LT(h.history.at("loss").back(), h.history.at("loss").front() / 2);
  const Logs logs = model->evaluate(x, y, {.verbose = 0});
  EXPECT_GT(logs.at("accuracy"), 0.9);
  tasks.end();
  EXPECT_THROW(model->fit(x, y, {.verbose = 0}), errors::FailedPrecondition);
}

}  // namespace
}  // namespace berth::keras
