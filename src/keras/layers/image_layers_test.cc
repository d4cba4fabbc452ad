// Layers of images: convolutions, pools, sizes.

#include "berth/keras/image_layers.h"

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "keras/layers/layers_testing.h"

namespace berth::keras {
namespace {

Tensor counted(const Shape& shape) {
  return reshape(range(1, shape.num_elements() + 1, 1, float32), shape);
}

TEST(Conv1D, SlidesAndLooksBackOnly) {
  const Tensor x = counted({1, 4, 1});
  const auto of = [&](const Conv1DOptions& o) {
    return Conv1D(1, 2, o)(x).to_vector<float>();
  };
  EXPECT_EQ(of({.kernel_initializer = "ones"}), (Floats{3, 5, 7}));
  EXPECT_EQ(of({.padding = "causal", .kernel_initializer = "ones"}),
            (Floats{1, 3, 5, 7}));
  EXPECT_EQ(of({.padding = "causal",
                .dilation_rate = 2,
                .kernel_initializer = "ones"}),
            (Floats{1, 2, 4, 6}));
  EXPECT_EQ(of({.padding = "same", .strides = 2, .kernel_initializer = "ones"}),
            (Floats{3, 7}));
  const auto layer = Conv1D(4, 3, {.groups = 2});
  EXPECT_EQ(layer(ones({2, 5, 6})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(layer.get_weights()[0].shape(), (Shape{3, 3, 4}));
  EXPECT_THROW(Conv1D(3, 2, {.groups = 2}), errors::InvalidArgument);
}

TEST(Conv2D, OfGroupsHasFewerWeights) {
  const auto layer = Conv2D(4, 3, {.groups = 2});
  EXPECT_EQ(layer(Input({8, 8, 6})).shape(), (Shape{-1, 6, 6, 4}));
  EXPECT_EQ(layer.get_weights()[0].shape(), (Shape{3, 3, 3, 4}));
  EXPECT_THROW(Conv2D(4, 3, {.groups = 2})(ones({1, 8, 8, 5})),
               errors::InvalidArgument);
}

TEST(Conv2DTranspose, HasKerasSizes) {
  const auto size = [](int64_t k, int64_t s, const std::string& padding) {
    return Conv2DTranspose(
               2, k, {.padding = padding, .strides = s})(ones({1, 5, 5, 3}))
        .shape()[1];
  };
  // TensorFlow: in * stride, or in * stride + max(kernel - stride, 0).
  EXPECT_EQ(size(3, 2, "same"), 10);
  EXPECT_EQ(size(3, 2, "valid"), 11);
  EXPECT_EQ(size(2, 3, "valid"), 15);
  const auto layer =
      Conv2DTranspose(1, 2, {.strides = 2, .kernel_initializer = "ones"});
  EXPECT_EQ(layer(counted({1, 1, 2, 1})).to_vector<float>(),
            (Floats{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(layer.get_weights()[0].shape(), (Shape{2, 2, 1, 1}));
  EXPECT_EQ(Conv2DTranspose(4, 2)(Input({5, 5, 3})).shape(),
            (Shape{-1, 6, 6, 4}));
  EXPECT_EQ(Conv1DTranspose(4, 2, {.strides = 2})(ones({2, 3, 5})).shape(),
            (Shape{2, 6, 4}));
  EXPECT_THROW(Conv2DTranspose(4, 2, {.groups = 2}), errors::InvalidArgument);
  EXPECT_THROW(Conv1DTranspose(4, 2, {.padding = "causal"}),
               errors::InvalidArgument);
}

TEST(DepthwiseConv2D, FiltersEachChannel) {
  const auto layer = DepthwiseConv2D(2, {.depthwise_initializer = "ones"});
  EXPECT_EQ(layer(counted({1, 2, 2, 2})).to_vector<float>(),
            (Floats{1 + 3 + 5 + 7, 2 + 4 + 6 + 8}));
  EXPECT_EQ(layer.weights().size(), 2u);
  EXPECT_EQ(DepthwiseConv2D(
                3, {.depth_multiplier = 3, .padding = "same"})(Input({8, 8, 4}))
                .shape(),
            (Shape{-1, 8, 8, 12}));
  EXPECT_THROW(DepthwiseConv2D(3, {.depth_multiplier = 0}),
               errors::InvalidArgument);
}

TEST(SeparableConv2D, MixesChannelsAfterwards) {
  const auto layer = SeparableConv2D(3, 2,
                                     {.depth_multiplier = 2,
                                      .depthwise_initializer = "ones",
                                      .pointwise_initializer = "ones"});
  EXPECT_EQ(layer(counted({1, 2, 2, 2})).to_vector<float>(),
            (Floats{72, 72, 72}));
  EXPECT_EQ(layer.count_params(), 2 * 2 * 2 * 2 + 4 * 3 + 3);
  EXPECT_THROW(SeparableConv2D(0, 2), errors::InvalidArgument);
}

TEST(Pooling1D, TakesLargestAndMean) {
  const Tensor x = reshape(constant({1.f, 4.f, 2.f, 6.f, 5.f}), {1, 5, 1});
  EXPECT_EQ(MaxPooling1D()(x).to_vector<float>(), (Floats{4, 6}));
  EXPECT_EQ(MaxPooling1D(2, {.padding = "same"})(x).to_vector<float>(),
            (Floats{4, 6, 5}));
  EXPECT_EQ(AveragePooling1D(3, {.strides = 2})(x).to_vector<float>(),
            (Floats{7 / 3.f, 13 / 3.f}));
  EXPECT_THROW(MaxPooling1D()(ones({2, 3})), errors::InvalidArgument);
}

TEST(GlobalPooling, LeavesAValuePerChannel) {
  const Tensor x = counted({1, 2, 2, 2});
  EXPECT_EQ(GlobalAveragePooling2D()(x).to_vector<float>(), (Floats{4, 5}));
  EXPECT_EQ(GlobalMaxPooling2D()(x).to_vector<float>(), (Floats{7, 8}));
  EXPECT_EQ(GlobalAveragePooling2D({.keepdims = true})(x).shape(),
            (Shape{1, 1, 1, 2}));
  const Tensor s = counted({2, 3, 1});
  EXPECT_EQ(GlobalAveragePooling1D()(s).to_vector<float>(), (Floats{2, 5}));
  EXPECT_EQ(GlobalMaxPooling1D()(s).to_vector<float>(), (Floats{3, 6}));
  EXPECT_THROW(GlobalMaxPooling1D()(x), errors::InvalidArgument);
}

TEST(ZeroPadding, PutsZerosAroundAndCroppingTakesThemAway) {
  const Tensor x = counted({1, 1, 2, 1});
  EXPECT_EQ(ZeroPadding2D({{0, 1}, {1, 0}})(x).to_vector<float>(),
            (Floats{0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(ZeroPadding2D()(x).shape(), (Shape{1, 3, 4, 1}));
  // Two numbers are rows and columns, as in Keras.
  EXPECT_EQ(ZeroPadding2D({1, 2})(Input({6, 6, 1})).shape(),
            (Shape{-1, 8, 10, 1}));
  EXPECT_EQ(Cropping2D({1, 2})(Input({6, 6, 1})).shape(), (Shape{-1, 4, 2, 1}));
  EXPECT_EQ(Cropping2D(1)(ZeroPadding2D()(x)).to_vector<float>(),
            x.to_vector<float>());
  const Tensor s = counted({1, 2, 1});
  EXPECT_EQ(ZeroPadding1D({2, 0})(s).to_vector<float>(), (Floats{0, 0, 1, 2}));
  EXPECT_EQ(Cropping1D({1, 0})(s).to_vector<float>(), (Floats{2}));
  EXPECT_EQ(ZeroPadding2D(2)(Input({4, 4, 3})).shape(), (Shape{-1, 8, 8, 3}));
  EXPECT_EQ(Cropping2D(1)(Input({4, 4, 3})).shape(), (Shape{-1, 2, 2, 3}));
  EXPECT_THROW(ZeroPadding2D(-1), errors::InvalidArgument);
  EXPECT_THROW(Cropping1D(1)(s), errors::InvalidArgument);
}

TEST(UpSampling, RepeatsPixels) {
  EXPECT_EQ(UpSampling2D({2, 1})(counted({1, 2, 2, 1})).to_vector<float>(),
            (Floats{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(UpSampling2D({1, 2})(counted({1, 2, 2, 1})).to_vector<float>(),
            (Floats{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(UpSampling1D(3)(counted({1, 2, 1})).to_vector<float>(),
            (Floats{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(UpSampling2D(2)(Input({4, 4, 3})).shape(), (Shape{-1, 8, 8, 3}));
  EXPECT_THROW(UpSampling1D(0), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::keras
