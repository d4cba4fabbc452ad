// Ready networks: shapes, parameters, values of Keras.

#include "berth/keras/applications.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "berth/berth.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

TEST(Applications, HaveThePublishedNumbersOfParametersSlow) {
  EXPECT_EQ(applications::ResNet18().count_params(), 11699112);
  EXPECT_EQ(applications::ResNet50().count_params(), 25636712);
  EXPECT_EQ(applications::MobileNetV2().count_params(), 3538984);
}

// Numbers of conformance/fixtures/make_keras_surface.py, of Keras' models with
// few classes: drawing weights takes long.
TEST(Applications, HaveTheParametersOfKerasSlow) {
  using Make = Model (*)(const applications::ImageOptions&, Site);
  const std::map<std::string, Make> all{
      {"MobileNet", &applications::MobileNet},
      {"DenseNet121", &applications::DenseNet121},
      {"EfficientNetB0", &applications::EfficientNetB0},
      {"EfficientNetB1", &applications::EfficientNetB1},
      {"Xception", &applications::Xception},
      {"ResNet50V2", &applications::ResNet50V2}};
  std::ifstream file(BERTH_SOURCE_DIR
                     "/conformance/fixtures/keras_surface.json");
  const auto want = nlohmann::json::parse(file)["parameters"];
  for (const auto& [name, make] : all) {
    EXPECT_EQ(make({.classes = 10}, Site::here()).count_params(),
              want[name].get<int64_t>())
        << name;
  }
}

TEST(Applications, PreprocessAsKerasDoes) {
  std::ifstream file(BERTH_SOURCE_DIR
                     "/conformance/fixtures/keras_surface.json");
  const auto want = nlohmann::json::parse(file)["preprocess_input"];
  const Tensor x = constant({{0.f, 50.f, 255.f}});
  for (const char* mode : {"caffe", "tf", "torch"}) {
    const auto y = applications::preprocess_input(x, mode).to_vector<float>();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(y[i], want[mode]["values"][i].get<double>(), 1e-4) << mode;
    }
  }
  EXPECT_THROW(applications::preprocess_input(x, "x"), errors::InvalidArgument);
}

TEST(Applications, TrainOnSmallImages) {
  const applications::ImageOptions small{
      .classes = 3, .image_size = 32, .alpha = 0.125};
  for (const auto& make :
       {&applications::ResNet18, &applications::ResNet50,
        &applications::MobileNetV2, &applications::VGG16,
        &applications::MobileNet, &applications::ResNet50V2}) {
    Model model = make(small, Site::here());
    model.compile(
        {.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
    const Tensor loss =
        model.train_on_batch(ones({2, 32, 32, 3}), constant({0, 2}));
    EXPECT_TRUE(std::isfinite(loss.item<float>())) << model.name();
  }
  EXPECT_THROW(applications::VGG16({.image_size = 8}), errors::InvalidArgument);
}

// Counts one and two layers on few words, from which those of all follow:
// drawing so many numbers takes long.
TEST(Applications, OfTextHaveThePublishedNumbersOfParametersSlow) {
  const auto parameters = [](const auto& make, int64_t words, int64_t longest) {
    const auto count = [&](int64_t layers) {
      return make({.vocabulary_size = 10,
                   .sequence_length = 2,
                   .max_sequence_length = longest,
                   .num_layers = layers},
                  Site::here())
          .count_params();
    };
    const int64_t one = count(1), two = count(2);
    return one + 11 * (two - one) + (words - 10) * 768;
  };
  EXPECT_EQ(parameters(&applications::BERTBase, 30522, 512), 109482240);
  EXPECT_EQ(parameters(&applications::GPT2Small, 50257, 1024), 124439808);
}

applications::TextOptions little() {
  return {.vocabulary_size = 11,
          .sequence_length = 6,
          .num_layers = 2,
          .num_heads = 2,
          .hidden_dim = 8,
          .dropout = 0};
}

// What comes later changes nothing that came before.
TEST(Applications, GPT2SeesThePastAloneAndLearnsSlow) {
  Model model = applications::GPT2Small(little());
  const Tensor a = constant({{1, 2, 3, 4, 5, 6}}),
               b = constant({{1, 2, 3, 9, 8, 7}});
  const Tensor x = model.predict(a), y = model.predict(b);
  EXPECT_EQ(x.shape(), (Shape{1, 6, 11}));
  EXPECT_EQ((x[{slice(), slice(0, 3)}]).to_vector<float>(),
            (y[{slice(), slice(0, 3)}]).to_vector<float>());
  EXPECT_NE((x[{slice(), slice(3)}]).to_vector<float>(),
            (y[{slice(), slice(3)}]).to_vector<float>());
  model.compile(
      {.optimizer = Adam(0.02),
       .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  const Tensor next = constant({{2, 3, 4, 5, 6, 7}});
  for (int i = 0; i < 60; ++i) model.train_on_batch(a, next);
  EXPECT_LT(model.train_on_batch(a, next).item<float>(), 0.1f);
  const Model again = clone_model(model);
  EXPECT_EQ(again.count_params(), model.count_params());
}

// What stands in places of padding changes nothing elsewhere.
TEST(Applications, BERTDoesNotLookAtPadding) {
  const Model model = applications::BERTBase(little());
  const Tensor kinds = zeros({1, 6}, int32);
  const auto pooled = [&](const Tensor& ids) {
    return model(Tensors{ids, kinds}, false)[1].to_vector<float>();
  };
  const auto sequence = [&](const Tensor& ids) {
    return model(Tensors{ids, kinds}, false)[0][{slice(), slice(0, 3)}]
        .to_vector<float>();
  };
  const Tensor padded = constant({{1, 2, 3, 0, 0, 0}});
  EXPECT_EQ(model(Tensors{padded, kinds}, false)[0].shape(), (Shape{1, 6, 8}));
  EXPECT_EQ(pooled(padded).size(), 8u);
  EXPECT_NE(sequence(padded), sequence(constant({{1, 2, 3, 4, 0, 0}})));
  // These three tokens alone.
  applications::TextOptions short_one = little();
  short_one.sequence_length = 3;
  short_one.max_sequence_length = 6;
  Model alone = applications::BERTBase(short_one);
  alone.set_weights(model.get_weights());
  const auto want =
      alone(Tensors{constant({{1, 2, 3}}), zeros({1, 3}, int32)}, false)[0]
          .to_vector<float>();
  const auto got = sequence(padded);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
  EXPECT_THROW(applications::BERTBase({.num_heads = 5}),
               errors::InvalidArgument);
}

TEST(KerasUtils, OneHotRowsAndPictures) {
  EXPECT_EQ(utils::to_categorical(constant({1, 0})).to_vector<float>(),
            (std::vector<float>{0, 1, 1, 0}));
  EXPECT_THROW(utils::to_categorical(constant({3}), 2),
               errors::InvalidArgument);
  const KerasTensor x = Input({4}, {.name = "x"});
  const Model model(x, Add()({Dense(4, {.name = "d"})(x), x}));
  const std::string svg = utils::plot_model(model, "");
  expect_has(svg, "<svg");
  expect_has(svg, "d (Dense)");
  expect_has(svg, "(None, 4)");
}

}  // namespace
}  // namespace berth::keras
