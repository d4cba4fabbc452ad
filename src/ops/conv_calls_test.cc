#include <gtest/gtest.h>

#include "berth/ops/nn.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"

namespace berth {
namespace {

using test::Doubles;
using test::doubles;
using test::expect_invalid;
using testing::expect_gradients;
using testing::numbers;

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  const Doubles x = doubles(a), y = doubles(b);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-13);
}

// Each group is a convolution of its own.
TEST(Conv2D, OfGroupsIsConvolutionsSideBySide) {
  const Tensor x = numbers({2, 4, 4, 6}), w = numbers({3, 3, 2, 6}, 1);
  Tensors parts;
  for (int64_t g = 0; g < 3; ++g) {
    parts.push_back(nn::conv2d(slice(x, {0, 0, 0, 2 * g}, {-1, -1, -1, 2}),
                               slice(w, {0, 0, 0, 2 * g}, {-1, -1, -1, 2})));
  }
  expect_same(nn::conv2d(x, w), concat(parts, 3));
  expect_invalid(
      [&] {
        nn::conv2d(x, numbers({3, 3, 4, 6}));
      },
      "channels differ");
  expect_invalid(
      [&] {
        nn::conv2d(x, numbers({3, 3, 2, 4}));
      },
      "multiple of the 3 groups");
}

TEST(Conv2D, OfChannelsFirstIsTheTranspose) {
  const Tensor x = numbers({2, 5, 4, 3}), w = numbers({2, 3, 3, 2}, 1);
  const Tensor want = nn::conv2d(x, w, {.strides = {2, 1}, .padding = "SAME"});
  const Tensor first = transpose(x, {0, 3, 1, 2});
  expect_same(
      nn::conv2d(
          first, w,
          {.strides = {1, 1, 2, 1}, .padding = "SAME", .data_format = "NCHW"}),
      transpose(want, {0, 3, 1, 2}));
  expect_invalid([&] { nn::conv2d(x, w, {.data_format = "CHWN"}); },
                 "\"CHWN\"");
}

TEST(Conv2D, ExplicitPaddingIsThatOfPad) {
  const Tensor x = numbers({1, 3, 4, 2}), w = numbers({2, 2, 2, 1}, 1);
  const Tensor want = nn::conv2d(pad(x, {0, 0, 1, 2, 0, 3, 0, 0}), w);
  expect_same(
      nn::conv2d(x, w,
                 {.padding = "EXPLICIT", .explicit_paddings = {1, 2, 0, 3}}),
      want);
  expect_invalid([&] { nn::conv2d(x, w, {.padding = "EXPLICIT"}); },
                 "explicit_paddings is []");
  expect_invalid(
      [&] {
        nn::conv2d(x, w,
                   {.padding = "EXPLICIT", .explicit_paddings = {1, -2, 0, 3}});
      },
      "explicit_paddings is [0, 0, 1, -2");
  expect_invalid(
      [&] {
        nn::conv2d(x, w, {.explicit_paddings = {1, 1, 1, 1}});
      },
      "with it");
}

// Each pixel of the input puts a filter into the output.
TEST(Conv2DTranspose, SpreadsTheFilter) {
  const Tensor x = constant(Doubles{1, 10}, {1, 1, 2, 1});
  const Tensor w = constant(Doubles{1, 2, 3}, {1, 3, 1, 1});
  const nn::Conv2DOptions by_2{.strides = {1, 2}};
  const Tensor y = nn::conv2d_transpose(x, w, {}, by_2);
  EXPECT_EQ(y.shape(), (Shape{1, 1, 5, 1}));
  EXPECT_EQ(doubles(y), (Doubles{1, 2, 13, 20, 30}));
  // Six pixels also have two windows.
  EXPECT_EQ(doubles(nn::conv2d_transpose(x, w, {1, 1, 6, 1}, by_2)),
            (Doubles{1, 2, 13, 20, 30, 0}));
  EXPECT_EQ(
      nn::conv2d_transpose(x, w, {}, {.strides = {1, 2}, .padding = "SAME"})
          .shape(),
      (Shape{1, 1, 4, 1}));
  expect_invalid(
      [&] {
        nn::conv2d_transpose(x, w, {1, 1, 9, 1}, by_2);
      },
      "out_backprop");
}

TEST(Conv2DTranspose, IsTheAdjointOfConv2D) {
  const Tensor x = numbers({2, 6, 5, 3}), w = numbers({3, 2, 3, 4}, 1);
  const nn::Conv2DOptions o{.strides = {2, 1}, .padding = "SAME"};
  const Tensor y = nn::conv2d(x, w, o);
  const Tensor dy = numbers(y.shape(), 2);
  const Tensor back = nn::conv2d_transpose(dy, w, {2, 6, 5, 3}, o);
  EXPECT_NEAR(doubles(math::reduce_sum(y * dy))[0],
              doubles(math::reduce_sum(x * back))[0], 1e-11);
  expect_gradients(
      [&](const Tensors& in) {
        const Tensor z = nn::conv2d_transpose(in[0], in[1], {}, o);
        return z * z;
      },
      {numbers({1, 2, 2, 2}), numbers({3, 2, 1, 2}, 1)});
}

// Filter j of channel c makes channel c * m + j.
TEST(DepthwiseConv2D, FiltersEachChannel) {
  const Tensor x = constant(Doubles{1, 2, 3, 4}, {1, 1, 2, 2});
  const Tensor w = constant(Doubles{1, 10, 100, 1000}, {1, 1, 2, 2});
  EXPECT_EQ(doubles(nn::depthwise_conv2d(x, w)),
            (Doubles{1, 10, 200, 2000, 3, 30, 400, 4000}));
  const Tensor mix = constant(Doubles{1, 0, 0, 1}, {1, 1, 4, 1});
  EXPECT_EQ(doubles(nn::separable_conv2d(x, w, mix)), (Doubles{2001, 4003}));
  expect_invalid(
      [&] {
        nn::depthwise_conv2d(x, numbers({1, 1, 3, 1}));
      },
      "channels differ");
}

TEST(DepthwiseConv2D, GradientsOfBothOrdersFollowDifferences) {
  expect_gradients(
      [&](const Tensors& x) {
        const Tensor y = nn::depthwise_conv2d(x[0], x[1], {.padding = "SAME"});
        return y * y;
      },
      {numbers({1, 3, 3, 2}), numbers({2, 2, 2, 2}, 1)});
}

TEST(Conv1D, SlidesAlongTheSequence) {
  const Tensor x = constant(Doubles{1, 2, 3, 4, 5}, {1, 5, 1});
  const Tensor w = constant(Doubles{1, 10}, {2, 1, 1});
  EXPECT_EQ(doubles(nn::conv1d(x, w)), (Doubles{21, 32, 43, 54}));
  EXPECT_EQ(doubles(nn::conv1d(x, w, {.stride = 2, .padding = "SAME"})),
            (Doubles{21, 43, 5}));
  EXPECT_EQ(doubles(nn::conv1d(x, w, {.dilations = 3})), (Doubles{41, 52}));
  // Causal: nothing of the future.
  EXPECT_EQ(doubles(nn::conv1d(
                x, w, {.padding = "EXPLICIT", .explicit_paddings = {1, 0}})),
            (Doubles{10, 21, 32, 43, 54}));
  EXPECT_EQ(
      doubles(nn::conv1d(transpose(x, {0, 2, 1}), w, {.data_format = "NCW"})),
      (Doubles{21, 32, 43, 54}));
  const Tensor pair = constant(Doubles{1, 2}, {1, 2, 1});
  EXPECT_EQ(doubles(nn::conv1d_transpose(pair, w, {}, {.stride = 2})),
            (Doubles{1, 10, 2, 20}));
  EXPECT_EQ(nn::conv1d_transpose(pair, w, {1, 5, 1}, {.stride = 2}).shape(),
            (Shape{1, 5, 1}));
  expect_invalid([&] { nn::conv1d(ones({5, 1}, float64), w); }, "[n, s, c]");
}

TEST(Pool1D, TakesLargestAndMean) {
  const Tensor x = constant(Doubles{1, 5, 2, 8, 3}, {1, 5, 1});
  EXPECT_EQ(doubles(nn::max_pool1d(x)), (Doubles{5, 8}));
  EXPECT_EQ(doubles(nn::avg_pool1d(x, {.strides = 1})),
            (Doubles{3, 3.5, 5, 5.5}));
  EXPECT_EQ(doubles(nn::max_pool1d(x, {.padding = "SAME"})),
            (Doubles{5, 8, 3}));
}

TEST(MaxPool, SaysWhereTheLargestIs) {
  const Tensor x = constant(Doubles{1, 9, 5, 2,  //
                                    3, 0, 7, 4},
                            {1, 2, 2, 2});
  const auto [y, at] = nn::max_pool_with_argmax(concat({x, x}, 0));
  EXPECT_EQ(doubles(y), (Doubles{7, 9, 7, 9}));
  EXPECT_EQ(at.to_vector<int64_t>(), (std::vector<int64_t>{6, 1, 6, 1}));
}

TEST(Pool, OfChannelsFirstIsTheTranspose) {
  const Tensor x = numbers({2, 4, 6, 3});
  const Tensor want = nn::max_pool2d(x, {.ksize = {2, 3}});
  expect_same(nn::max_pool2d(transpose(x, {0, 3, 1, 2}),
                             {.ksize = {1, 1, 2, 3}, .data_format = "NCHW"}),
              transpose(want, {0, 3, 1, 2}));
}

}  // namespace
}  // namespace berth
