#include <gtest/gtest.h>

#include <array>

#include "berth/errors.h"
#include "berth/function.h"
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

Tensor ones_of(const Shape& shape) {
  return constant(Doubles(static_cast<size_t>(shape.num_elements()), 1.0),
                  shape);
}

TEST(Conv2D, OfOnesCountsThePixelsUnderTheWindow) {
  const Tensor x = ones_of({1, 3, 3, 1}), w = ones_of({3, 3, 1, 1});
  EXPECT_EQ(nn::conv2d(x, w, {.padding = "SAME"}).to_vector<double>(),
            (Doubles{4, 6, 4, 6, 9, 6, 4, 6, 4}));
  EXPECT_EQ(nn::conv2d(x, w).to_vector<double>(), Doubles{9});
}

// TensorFlow puts the odd pixel of SAME at the end.
TEST(Conv2D, SamePadsTheEndFirst) {
  const Tensor x = constant(Doubles{1, 2, 3, 4}, {1, 1, 4, 1});
  const Tensor w = constant(Doubles{1, 10, 100}, {1, 3, 1, 1});
  const Tensor y = nn::conv2d(x, w, {.strides = {1, 2}, .padding = "SAME"});
  EXPECT_EQ(y.to_vector<double>(), (Doubles{321, 43}));
}

TEST(Conv2D, DilationSkipsPixels) {
  const Tensor x = constant(Doubles{1, 2, 3, 4, 5}, {1, 1, 5, 1});
  const Tensor w = constant(Doubles{1, 10}, {1, 2, 1, 1});
  const Tensor y = nn::conv2d(x, w, {.dilations = {1, 3}});
  EXPECT_EQ(y.to_vector<double>(), (Doubles{41, 52}));
}

TEST(Conv2D, MixesChannelsAsAMatrixProduct) {
  const Tensor x = numbers({2, 2, 3, 4}), w = numbers({1, 1, 4, 5}, 1);
  const Tensor want = matmul(reshape(x, {12, 4}), reshape(w, {4, 5}));
  const Doubles y = nn::conv2d(x, w).to_vector<double>();
  const Doubles product = want.to_vector<double>();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], product[i], 1e-14);
}

// Two groups of channels are two convolutions; a trace that does not know the
// channels gives the same numbers and gradients.
TEST(Conv2D, GroupsOfUnknownChannelsAreThoseOfTheCall) {
  const Tensor w = numbers({3, 3, 2, 6}, 1);
  const auto value_and_gradients = [&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    const Tensor y = nn::conv2d(x, w);
    const Tensors d = tape.gradient(y, {x, w});
    return Tensors{y, d[0], d[1]};
  };
  const auto traced =
      function(value_and_gradients,
               {.input_signature = {{Shape{-1, -1, -1, -1}, float64, {}}}});
  for (const int64_t channels : {4, 2, 6}) {
    const Tensor x = numbers({2, 5, 4, channels});
    const Tensors want = value_and_gradients(x), got = traced(x);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i].shape(), want[i].shape());
      const Doubles a = got[i].to_vector<double>();
      const Doubles b = want[i].to_vector<double>();
      for (size_t k = 0; k < b.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-12);
    }
  }
  EXPECT_THROW(traced(numbers({2, 5, 4, 3})), errors::InvalidArgument);
  EXPECT_EQ(traced.num_traces(), 1);
}

TEST(Conv2D, GradientsOfBothOrdersFollowDifferences) {
  const std::array<nn::Conv2DOptions, 4> all = {{
      {.padding = "SAME"},
      {.padding = "VALID"},
      {.strides = {2}, .padding = "SAME"},
      {.strides = {1, 2}, .padding = "VALID", .dilations = {2, 1}},
  }};
  for (const nn::Conv2DOptions& options : all) {
    expect_gradients(
        [&](const Tensors& x) {
          const Tensor y = nn::conv2d(x[0], x[1], options);
          return y * y;  // so that the gradient of y depends on x
        },
        {numbers({2, 4, 3, 1}), numbers({2, 2, 1, 2}, 1)});
  }
}

// Where sizes are unknown, the gradients get them from a third operand.
TEST(Conv2D, GradientsTakeTheirShapeFromATensorToo) {
  const Tensor x = numbers({2, 5, 4, 3}), w = numbers({3, 2, 3, 2}, 1);
  const Tensor dy = numbers({2, 3, 2, 2}, 2);
  const Attrs::Pair strides{"strides", Sizes{1, 2, 2, 1}};
  const Attrs::Pair padding{"padding", std::string("SAME")};
  const AttrsRef like({strides, padding});
  const OpDef& input = op_named("Conv2DBackpropInput");
  const AttrsRef sizes(
      {strides, padding, {"input_sizes", Sizes{-1, 5, 4, -1}}});
  EXPECT_EQ(call1(input, {&w, &dy, &x}, like.get()).to_vector<double>(),
            call1(input, w, dy, sizes.get()).to_vector<double>());
  const OpDef& filter = op_named("Conv2DBackpropFilter");
  const AttrsRef filter_sizes(
      {strides, padding, {"filter_sizes", Sizes{3, 2, -1, -1}}});
  EXPECT_EQ(call1(filter, {&x, &dy, &w}, like.get()).to_vector<double>(),
            call1(filter, x, dy, filter_sizes.get()).to_vector<double>());
}

TEST(Conv2D, RefusesShapesAndAttributesThatDoNotFit) {
  const Tensor x = ones_of({1, 3, 3, 2}), w = ones_of({2, 2, 2, 1});
  const auto refused = [](auto&& fn) {
    EXPECT_THROW(fn(), errors::InvalidArgument);
  };
  refused([&] { nn::conv2d(x, ones_of({2, 2, 3, 1})); });  // channels
  refused([&] { nn::conv2d(x, ones_of({4, 2, 2, 1})); });  // window too large
  refused([&] { nn::conv2d(ones_of({3, 3, 2}), w); });
  refused([&] { nn::conv2d(x, w, {.padding = "same"}); });
  refused([&] { nn::conv2d(x, w, {.strides = {0}}); });
  refused([&] { nn::conv2d(x, w, {.strides = {int64_t{1} << 62}}); });
  refused([&] { nn::conv2d(x, w, {.strides = {1, 1, 1}}); });
  refused([&] { nn::conv2d(x, w, {.dilations = {2, 1, 1, 1}}); });
  const OpDef& op = op_named("Conv2DBackpropInput");
  const auto backprop = [&](const Sizes& sizes) {
    const AttrsRef attrs({{"strides", Sizes{1, 1, 1, 1}},
                          {"padding", std::string("VALID")},
                          {"input_sizes", sizes}});
    return call1(op, w, ones_of({1, 2, 2, 1}), attrs.get());
  };
  EXPECT_EQ(backprop({-1, 3, 3, -1}).shape(), (Shape{1, 3, 3, 2}));
  // The operands may be part of a larger batch.
  EXPECT_EQ(backprop({8, 3, 3, 2}).shape(), (Shape{1, 3, 3, 2}));
  refused([&] { backprop({}); });
  refused([&] { backprop({1, -1, 3, 2}); });
  refused([&] { backprop({1, 4, 3, 2}); });  // gives 3 rows, not 2
}

TEST(Conv2D, UnknownDimensionsPassThroughTheShapeRules) {
  const Shape x{-5, 28, kUnknownDim, 3}, w{3, 3, 3, 8};
  const SpecView in[] = {{float32, &x}, {float32, &w}};
  OutSpec out;
  const AttrsRef same(
      {{"strides", Sizes{1, 2, 2, 1}}, {"padding", std::string("SAME")}});
  infer_outputs(op_named("Conv2D"), same.get(), in, {&out, 1});
  EXPECT_EQ(out.shape, (Shape{-5, 14, kUnknownDim, 8}));
  const Shape dy{-5, 14, 14, 8};
  const SpecView back[] = {{float32, &w}, {float32, &dy}};
  const AttrsRef sizes({{"strides", Sizes{1, 2, 2, 1}},
                        {"padding", std::string("SAME")},
                        {"input_sizes", Sizes{-1, 28, 28, -1}}});
  infer_outputs(op_named("Conv2DBackpropInput"), sizes.get(), back, {&out, 1});
  EXPECT_EQ(out.shape, (Shape{-5, 28, 28, 3}));
}

TEST(Conv2D, CostCountsEachTapTwice) {
  const Shape x{2, 4, 4, 3}, w{3, 3, 3, 8};
  const SpecView in[] = {{float32, &x}, {float32, &w}};
  OutSpec out;
  const AttrsRef attrs(
      {{"strides", Sizes{1, 1, 1, 1}}, {"padding", std::string("SAME")}});
  const OpDef& op = op_named("Conv2D");
  infer_outputs(op, attrs.get(), in, {&out, 1});
  const Cost cost = op.cost(InferContext(op, attrs.get(), in, {&out, 1}));
  EXPECT_EQ(cost.flops, 2.0 * 2 * 4 * 4 * 8 * 27);
  EXPECT_EQ(cost.bytes, 4.0 * (2 * 4 * 4 * 3 + 27 * 8 + 2 * 4 * 4 * 8));
}

}  // namespace
}  // namespace berth
