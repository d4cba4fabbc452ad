#include "berth/keras/applications.h"

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "keras/testing.h"

namespace berth::keras {
namespace {

TEST(Applications, HaveThePublishedNumbersOfParametersSlow) {
  EXPECT_EQ(applications::ResNet18().count_params(), 11699112);
  EXPECT_EQ(applications::ResNet50().count_params(), 25636712);
  EXPECT_EQ(applications::MobileNetV2().count_params(), 3538984);
}

TEST(Applications, TrainOnSmallImages) {
  const applications::ImageOptions small{
      .classes = 3, .image_size = 32, .alpha = 0.125};
  for (const auto& make : {&applications::ResNet18, &applications::ResNet50,
                           &applications::MobileNetV2, &applications::VGG16}) {
    Model model = make(small, Site::here());
    model.compile(
        {.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
    const Tensor loss =
        model.train_on_batch(ones({2, 32, 32, 3}), constant({0, 2}));
    EXPECT_TRUE(std::isfinite(loss.item<float>())) << model.name();
  }
  EXPECT_THROW(applications::VGG16({.image_size = 8}), errors::InvalidArgument);
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
