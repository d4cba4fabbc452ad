#include "berth/ops/nn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/rng.h"
#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/random.h"
#include "op/kernel.h"
#include "ops/gradient_check_testing.h"
#include "ops/op_call.h"

namespace berth {
namespace {

using testing::expect_gradients;
using testing::numbers;
using Floats = std::vector<float>;

TEST(Relu, ZeroesNegativesAndKeepsNaN) {
  const Tensor y = nn::relu(constant({-2.f, 0.f, 3.f, NAN}));
  const Floats v = y.to_vector<float>();
  EXPECT_EQ(Floats(v.begin(), v.begin() + 3), (Floats{0, 0, 3}));
  EXPECT_TRUE(std::isnan(v[3]));
}

TEST(Relu, GradientsOfBothOrdersFollowDifferences) {
  // Squared, so that the second order is not zero everywhere.
  expect_gradients(
      [](const Tensors& x) {
        const Tensor r = nn::relu(x[0]);
        return r * r;
      },
      {numbers({3, 4})});
}

TEST(Relu, GradientAtZeroIsZero) {
  GradientTape tape;
  const Tensor x = constant({0.f, -1.f, 2.f});
  tape.watch(x);
  const Tensor dx = tape.gradient(nn::relu(x), x);
  EXPECT_EQ(dx.to_vector<float>(), (Floats{0, 0, 1}));
}

TEST(Gelu, IsXTimesTheNormalDistribution) {
  const double x = 0.7;
  const Tensor t = constant({x});
  EXPECT_NEAR(nn::gelu(t).item<double>(),
              x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2)), 1e-15);
  // The tanh form is near, but not the same.
  const double near = nn::gelu(t, {.approximate = true}).item<double>();
  EXPECT_NEAR(near, nn::gelu(t).item<double>(), 1e-3);
  EXPECT_NE(near, nn::gelu(t).item<double>());
}

TEST(Gelu, GradientsOfBothOrdersFollowDifferences) {
  for (const bool approximate : {false, true}) {
    expect_gradients(
        [=](const Tensors& x) {
          return nn::gelu(x[0] * 2.0, {.approximate = approximate});
        },
        {numbers({7})});
  }
}

TEST(BiasAdd, AddsPerChannelOfAnyRank) {
  const Tensor x = constant(Floats{1, 2, 3, 4}, {2, 1, 2});
  const Tensor y = nn::bias_add(x, constant({10.f, 20.f}));
  EXPECT_EQ(y.shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{11, 22, 13, 24}));
}

TEST(BiasAdd, GradientsOfBothOrdersFollowDifferences) {
  expect_gradients(
      [](const Tensors& x) {
        const Tensor y = nn::bias_add(x[0], x[1]);
        return y * y;
      },
      {numbers({2, 3}), numbers({3}, 1)});
}

TEST(BiasAdd, NamesTheShapesThatDisagree) {
  const Tensor x = zeros_like(constant(Floats(6), {2, 3}));
  try {
    nn::bias_add(x, constant({1.f, 2.f}));
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("value is [2,3], bias is [2]"),
              std::string::npos)
        << e.what();
  }
  EXPECT_THROW(nn::bias_add(constant(1.f), constant({1.f})),
               errors::InvalidArgument);
}

TEST(Dropout, KeepsTheElementsThatItsRandomStreamNames) {
  const Tensor x = constant(Floats(1000, 3.f), {10, 100});
  const AttrsRef attrs(
      {{"rate", 0.25}, {"seed", int64_t{5}}, {"op_id", int64_t{9}}});
  const Floats y =
      call_many(op_named("Dropout"), {&x}, attrs.get())[0].to_vector<float>();
  const RandomStream stream(5, 9, 0);
  int kept = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], stream.uniform(i) >= 0.25f ? 4.f : 0.f) << i;
    kept += y[i] != 0;
  }
  EXPECT_NEAR(kept, 750, 60);  // four deviations
}

TEST(Dropout, GradientPassesWhereTheValueDid) {
  const Tensor x = constant(Floats(64, 1.f), {64});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = nn::dropout(x, 0.5, {.seed = 1});
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), y.to_vector<float>());
}

TEST(Dropout, GradientsOfBothOrdersFollowDifferences) {
  expect_gradients(
      [](const Tensors& x) {
        random::set_seed(3);  // the same mask at every call
        const Tensor y = nn::dropout(x[0], 0.4);
        return y * y * y;
      },
      {numbers({9})});
}

TEST(Dropout, DrawsAnotherMaskAtEveryCall) {
  const Tensor x = constant(Floats(64, 1.f), {64});
  EXPECT_NE(nn::dropout(x, 0.5).to_vector<float>(),
            nn::dropout(x, 0.5).to_vector<float>());
}

TEST(Dropout, DrawsTheSameMasksAfterTheSameSeed) {
  const Tensor x = constant(Floats(64, 1.f), {64});
  random::set_seed(7);
  const Floats first = nn::dropout(x, 0.5).to_vector<float>();
  random::set_seed(7);
  EXPECT_EQ(nn::dropout(x, 0.5).to_vector<float>(), first);
  random::set_seed(7);
  EXPECT_NE(nn::dropout(x, 0.5, {.seed = 1}).to_vector<float>(), first);
}

TEST(Dropout, RefusesRatesOutsideItsRange) {
  const Tensor x = constant({1.f});
  for (const double rate : {-0.1, 1.0, double{NAN}}) {
    EXPECT_THROW(nn::dropout(x, rate), errors::InvalidArgument) << rate;
  }
}

// The mask of a part is that part of the whole mask.
TEST(Dropout, PartsGiveTheBitsOfTheWhole) {
  const OpDef& op = op_named("Dropout");
  const AttrsRef attrs({{"rate", 0.5}, {"seed", int64_t{2}}});
  const Shape shape{7, 3};
  const Tensor x = constant(Floats(21, 1.f), shape);
  const std::vector<uint8_t> whole =
      call_many(op, {&x}, attrs.get())[1].to_vector<uint8_t>();
  const Shape part{3, 3};
  Floats in(9, 1.f), y(9);
  std::vector<uint8_t> mask(9);
  const View views[] = {{in.data(), &part, float32},
                        {y.data(), &part, float32},
                        {mask.data(), &part, uint8}};
  KernelContext context;
  context.slice_origin = 4 * 3;
  const SpecView spec{float32, &part};
  const OutSpec outs[] = {{float32, part}, {uint8, part}};
  const Device& device = *x.impl()->block->device;
  bind_kernel(device.kernels(), {&op, attrs.get(), {&spec, 1}, outs, 1})
      .run({&op, attrs.get(), views, views + 1, 1, 2, &context});
  EXPECT_EQ(mask, std::vector<uint8_t>(whole.begin() + 12, whole.end()));
}

TEST(L2Loss, IsHalfTheSumOfSquares) {
  EXPECT_EQ(nn::l2_loss(constant({1.f, 2.f, 3.f})).item<float>(), 7.f);
}

}  // namespace
}  // namespace berth
