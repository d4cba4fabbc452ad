// Whole models in one file.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/errors_testing.h"
#include "berth/berth.h"
#include "io/safetensors.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

namespace fs = std::filesystem;

class SavedModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("berth_saved_model_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
  const Tensor x_ = random::normal({16, 4}), y_ = random::normal({16, 1});
};

Sequential model_to_save() {
  return Sequential({InputLayer({4}), Dense(8, {.activation = "tanh"}),
                     Dropout(0.0), Dense(1)});
}

std::vector<float> losses_of_steps(Model& model, const Tensor& x,
                                   const Tensor& y) {
  std::vector<float> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(model.train_on_batch(x, y).item<float>());
  }
  return all;
}

TEST_F(SavedModel, GoesOnTrainingToTheBit) {
  Model model = model_to_save();
  model.compile({.optimizer = Adam(0.05, {.clipnorm = 1}),
                 .loss = "huber",
                 .metrics = {"mae"}});
  losses_of_steps(model, x_, y_);
  model.save(path("model.safetensors"));
  Model again = load_model(path("model"));
  EXPECT_EQ(again.predict(x_).to_vector<float>(),
            model.predict(x_).to_vector<float>());
  EXPECT_EQ(again.optimizer().iterations().value().item<int64_t>(), 5);
  EXPECT_EQ(losses_of_steps(again, x_, y_), losses_of_steps(model, x_, y_));
  EXPECT_EQ(again.evaluate(x_, y_), model.evaluate(x_, y_));
  EXPECT_TRUE(again.metrics_result().contains("mae"));
}

TEST_F(SavedModel, KeepsNamesOfOutputsAndTheirLosses) {
  const KerasTensor in = Input({4}, {.name = "in"});
  const KerasTensor wide = Dense(6, {.activation = "relu"})(in);
  Model model(KerasTensors{in}, KerasTensors{Dense(1, {.name = "price"})(wide),
                                             Dense(2, {.name = "kind"})(wide)});
  model.compile({.optimizer = SGD(0.1, {.momentum = 0.9}),
                 .losses = {{"price", "mse"}, {"kind", "mae"}},
                 .loss_weights = {{"price", 0.25}, {"kind", 2.0}},
                 .metrics_by_output = {{"kind", {"mse"}}}});
  const NamedTensors y = {{"price", y_}, {"kind", random::normal({16, 2})}};
  model.train_on_batch(NamedTensors{{"in", x_}}, y, {});
  model.save(path("two.safetensors"));
  Model again = load_model(path("two.safetensors"));
  model.reset_metrics();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(
        again.train_on_batch(NamedTensors{{"in", x_}}, y, {}).item<float>(),
        model.train_on_batch(NamedTensors{{"in", x_}}, y, {}).item<float>());
  }
  EXPECT_EQ(again.metrics_result(), model.metrics_result());
}

TEST_F(SavedModel, MayLeaveTheTrainingOut) {
  Model model = model_to_save();
  model.compile({.optimizer = "adam", .loss = "mse"});
  losses_of_steps(model, x_, y_);
  model.save(path("bare.safetensors"), {.include_optimizer = false});
  Model bare = load_model(path("bare.safetensors"));
  EXPECT_THROW(bare.optimizer(), errors::FailedPrecondition);
  model.save(path("whole.safetensors"));
  Model alone = load_model(path("whole.safetensors"), {.compile = false});
  EXPECT_THROW(alone.optimizer(), errors::FailedPrecondition);
  const auto want = model.predict(x_).to_vector<float>();
  EXPECT_EQ(bare.predict(x_).to_vector<float>(), want);
  EXPECT_EQ(alone.predict(x_).to_vector<float>(), want);
  // A model made by hand takes the weights out of the same file.
  Model twin = model_to_save();
  twin.load_weights(path("whole.safetensors"));
  EXPECT_EQ(twin.predict(x_).to_vector<float>(), want);
}

TEST_F(SavedModel, RefusesWhatItCannotBe) {
  Model model = model_to_save();
  model.save(path("m.safetensors"));
  EXPECT_THROW(model.save(path("m.safetensors"), {.overwrite = false}),
               errors::AlreadyExists);
  EXPECT_THROW(model.save(path("m.keras")), errors::InvalidArgument);
  model.save_weights(path("w.safetensors"));
  const std::string text = message_of<errors::InvalidArgument>(
      [&] { load_model(path("w.safetensors")); });
  EXPECT_TRUE(says(text, "holds weights alone")) << text;
  EXPECT_THROW(load_model(path("none.safetensors")), errors::NotFound);
  // A loss without a name stands in no file.
  model.compile({.loss = Loss("own", [](const Tensor& y, const Tensor& p) {
                   return math::abs(y - p);
                 })});
  EXPECT_THROW(model.save(path("own.safetensors")), errors::FailedPrecondition);
}

TEST_F(SavedModel, RefusesDamagedDescriptions) {
  const auto with = [&](const std::string& model, const std::string& compile) {
    std::map<std::string, std::string> metadata = {{"berth.model", model}};
    if (!compile.empty()) metadata["berth.compile"] = compile;
    io::write_safetensors(path("bad.safetensors"), {{"dense/kernel", x_}},
                          metadata, "test");
    EXPECT_THROW(load_model(path("bad.safetensors")), errors::Error);
  };
  with("", "");
  with("[]", "");
  with("{\"class_name\": \"Sequential\"}", "");
  with("{\"class_name\": \"Nothing\", \"config\": {}}", "");
  with(std::string(100000, '['), "");
  const std::string good = model_to_save().to_json();
  with(good, "");  // other weights
  with(good, "{}");
}

// Nothing is made for it: 2^40 floats would be.
TEST_F(SavedModel, RefusesDescriptionsOfMoreThanTheFileHolds) {
  Model model = model_to_save();
  for (const char* units : {"1099511627776", "4611686018427387904"}) {
    std::string text = model.to_json();
    const std::string key = "\"units\":";
    const size_t at = text.find(key) + key.size();
    text.replace(at, text.find_first_of(",}", at) - at, units);
    io::write_safetensors(path("huge.safetensors"), {{"dense/kernel", x_}},
                          {{"berth.model", text}}, "test");
    const std::string message = message_of<errors::Error>(
        [&] { load_model(path("huge.safetensors")); });
    EXPECT_FALSE(message.empty());
    if (units[0] == '1') {
      EXPECT_TRUE(says(message, "does not hold")) << message;
    }
  }
  // Others than those of files are as large as they are asked to be.
  EXPECT_EQ(model_from_json(model.to_json()).count_params(),
            model.count_params());
}

}  // namespace
}  // namespace berth::keras
