#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/nn.h"
#include "ops/gradient_check_testing.h"
#include "ops/op_call.h"

namespace berth {
namespace {

using testing::expect_gradients;
using testing::numbers;
using Doubles = std::vector<double>;
using Sizes = std::vector<int64_t>;

Tensor image_3x3() {
  return constant(Doubles{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1});
}

TEST(MaxPool, TakesTheLargestPixelOfEachWindow) {
  const Tensor x = image_3x3();
  EXPECT_EQ(nn::max_pool2d(x).to_vector<double>(), Doubles{5});
  EXPECT_EQ(nn::max_pool2d(x, {.padding = "SAME"}).to_vector<double>(),
            (Doubles{5, 6, 8, 9}));
  EXPECT_EQ(nn::max_pool2d(x, {.strides = {1}}).to_vector<double>(),
            (Doubles{5, 6, 8, 9}));
}

TEST(MaxPool, LetsNaNThrough) {
  const Tensor x = constant(Doubles{1, NAN, 3, 4}, {1, 2, 2, 1});
  EXPECT_TRUE(std::isnan(nn::max_pool2d(x).item<double>()));
}

TEST(AvgPool, DividesByThePixelsInsideTheImage) {
  const Tensor x = image_3x3();
  EXPECT_EQ(nn::avg_pool2d(x, {.padding = "SAME"}).to_vector<double>(),
            (Doubles{3, 4.5, 7.5, 9}));
  EXPECT_EQ(nn::avg_pool2d(x).to_vector<double>(), Doubles{3});
}

TEST(MaxPool, FirstOfEqualPixelsGetsTheGradient) {
  const Tensor x = constant(Doubles(4, 1.0), {1, 2, 2, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor dx = tape.gradient(nn::max_pool2d(x), x);
  EXPECT_EQ(dx.to_vector<double>(), (Doubles{1, 0, 0, 0}));
}

TEST(Pool, GradientsOfBothOrdersFollowDifferences) {
  const std::array<nn::PoolOptions, 3> all = {{
      {.padding = "VALID"},
      {.padding = "SAME"},
      {.ksize = {3, 2}, .strides = {1, 2}, .padding = "SAME"},
  }};
  for (const nn::PoolOptions& options : all) {
    for (const bool max : {true, false}) {
      expect_gradients(
          [&](const Tensors& x) {
            const Tensor y = max ? nn::max_pool2d(x[0], options)
                                 : nn::avg_pool2d(x[0], options);
            return y * y;
          },
          {numbers({1, 5, 3, 2})});
    }
  }
}

// The gradient of MaxPoolGrad and that one's own.
TEST(MaxPool, GradientOpsAreDifferentiable) {
  const AttrsRef attrs({{"ksize", Sizes{1, 2, 2, 1}},
                        {"strides", Sizes{1, 2, 2, 1}},
                        {"padding", std::string("VALID")}});
  const Tensor x = numbers({1, 4, 4, 1});
  const Tensor y = nn::max_pool2d(x);
  for (const char* name : {"MaxPoolGrad", "MaxPoolGradGrad"}) {
    const OpDef& op = op_named(name);
    const bool first = std::string(name) == "MaxPoolGrad";
    expect_gradients(
        [&](const Tensors& g) {
          return call1(op, {&x, &y, &g[0]}, attrs.get());
        },
        {numbers(first ? y.shape() : x.shape(), 3)});
  }
}

TEST(AvgPool, GradientTakesItsShapeFromATensorToo) {
  const OpDef& op = op_named("AvgPoolGrad");
  const Attrs::Pair ksize{"ksize", Sizes{1, 2, 2, 1}};
  const Attrs::Pair strides{"strides", Sizes{1, 2, 2, 1}};
  const Attrs::Pair padding{"padding", std::string("SAME")};
  const AttrsRef sizes(
      {ksize, strides, padding, {"orig_input_shape", Sizes{-1, 5, 3, -1}}});
  const AttrsRef like({ksize, strides, padding});
  const Tensor dy = numbers({2, 3, 2, 2}), x = numbers({2, 5, 3, 2});
  EXPECT_EQ(call1(op, dy, x, like.get()).to_vector<double>(),
            call1(op, dy, sizes.get()).to_vector<double>());
}

TEST(Pool, RefusesShapesAndAttributesThatDoNotFit) {
  const Tensor x = image_3x3();
  const auto refused = [](auto&& fn) {
    EXPECT_THROW(fn(), errors::InvalidArgument);
  };
  refused([&] { nn::max_pool2d(x, {.ksize = {4}}); });
  refused([&] { nn::max_pool2d(x, {.ksize = {0}, .strides = {1}}); });
  refused([&] { nn::avg_pool2d(x, {.padding = "FULL"}); });
  refused([&] { nn::avg_pool2d(reshape(x, {3, 3})); });
  const OpDef& op = op_named("AvgPoolGrad");
  const AttrsRef attrs({{"ksize", Sizes{1, 2, 2, 1}},
                        {"strides", Sizes{1, 2, 2, 1}},
                        {"padding", std::string("VALID")}});
  refused([&] { call1(op, x, attrs.get()); });     // no sizes
  refused([&] { call1(op, x, x, attrs.get()); });  // pools to 1x1, not 3x3
}

}  // namespace
}  // namespace berth
