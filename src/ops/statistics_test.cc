// Composite reductions, norms, clips and losses of logits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "berth/gradient_tape.h"
#include "berth/ops/clip.h"
#include "berth/ops/contract.h"
#include "berth/ops/nn.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"
#include "ops/unknown_dims_testing.h"

namespace berth::test {
namespace {

using math::ReduceOptions;
using testing::expect_gradients;
using testing::numbers;

const ReduceOptions kRows{.axis = {{1}}};

void expect_near(const Tensor& got, const Doubles& want) {
  const Doubles a = doubles(got);
  ASSERT_EQ(a.size(), want.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isinf(want[i])) {
      EXPECT_EQ(a[i], want[i]) << i;
    } else {
      EXPECT_NEAR(a[i], want[i], 1e-12) << i;
    }
  }
}
Tensor slope(const std::function<Tensor(const Tensor&)>& fn, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(fn(x), x);
}

TEST(LogSumExp, IsExactForNumbersOfAnySize) {
  const Tensor x = constant(Doubles{1000, 1000, -1000, -1000, -kInf, -kInf,  //
                                    kInf, 0, -kInf, 0},
                            {5, 2});
  const double log2 = std::log(2.0);
  const Doubles want{1000 + log2, -1000 + log2, -kInf, kInf, 0};
  expect_near(math::reduce_logsumexp(x, kRows), want);
  const Tensor kept =
      math::reduce_logsumexp(x, {.axis = {{1}}, .keepdims = true});
  EXPECT_EQ(kept.shape(), (Shape{5, 1}));
  expect_near(kept, want);
  expect_near(math::reduce_logsumexp(zeros({2, 3}, float64)), {std::log(6.0)});
  expect_near(math::reduce_logsumexp(zeros({0, 1}, float64), {.axis = {{0}}}),
              {-kInf});
}

TEST(Statistics, AreThoseOfTheDefinition) {
  const Tensor x = constant(Doubles{1, 3, 2, 2, -1, 3}, {2, 3});
  expect_near(math::reduce_variance(x, kRows), {2.0 / 3, 26.0 / 9});
  expect_near(math::reduce_std(x, kRows),
              {std::sqrt(2.0 / 3), std::sqrt(26.0 / 9)});
  expect_near(math::reduce_euclidean_norm(x, kRows),
              {std::sqrt(14.0), std::sqrt(14.0)});
  expect_near(math::reduce_variance(x), {17.0 / 9});
  const Tensor some = constant({{0, 2, 0}, {-1, 0, 5}});
  EXPECT_EQ(ints(math::count_nonzero(some, kRows)), (Ints{1, 2}));
  EXPECT_EQ(math::count_nonzero(some).dtype(), int64);
  EXPECT_EQ(math::count_nonzero(some > 1.0).item<int64_t>(), 2);
  EXPECT_EQ(math::zero_fraction(some).item<float>(), 0.5f);
}

TEST(Statistics, GradientsOfBothOrdersFollowDifferences) {
  for (const bool keepdims : {false, true}) {
    const ReduceOptions over{.axis = {{0, 2}}, .keepdims = keepdims};
    for (const auto fn : {&math::reduce_logsumexp, &math::reduce_variance,
                          &math::reduce_std, &math::reduce_euclidean_norm}) {
      expect_gradients([&](const Tensors& x) { return fn(x[0], over, {}); },
                       {numbers({2, 3, 2})});
    }
  }
}

TEST(Norm, OfVectorsAndMatrices) {
  const Tensor x = constant(Doubles{3, -4, 0, 1, -2, 2}, {2, 3});
  expect_near(norm(x), {std::sqrt(34.0)});
  expect_near(norm(x, {.ord = 1}), {12});
  expect_near(norm(x, {.ord = kInf, .axis = {{1}}}), {4, 2});
  expect_near(norm(x, {.ord = 1, .axis = {{0}}}), {4, 6, 2});
  expect_near(norm(x, {.ord = 2, .axis = {{1}}}), {5, 3});
  expect_near(norm(x, {.ord = 3, .axis = {{1}}}),
              {std::cbrt(91.0), std::cbrt(17.0)});
  // For matrices: largest column sum, largest row sum.
  expect_near(norm(x, {.ord = 1, .axis = {{0, 1}}}), {6});
  expect_near(norm(x, {.ord = kInf, .axis = {{0, 1}}}), {7});
  expect_near(norm(x, {.ord = "fro", .axis = {{-2, -1}}}), {std::sqrt(34.0)});
  const Tensor kept = norm(x, {.ord = 1, .axis = {{0, 1}}, .keepdims = true});
  EXPECT_EQ(kept.shape(), (Shape{1, 1}));
  EXPECT_EQ(norm(x, {.ord = 1, .axis = {{0, 1}}}).shape(), Shape{});
  expect_invalid(
      [&] {
        norm(x, {.ord = 3, .axis = {{0, 1}}});
      },
      "for matrices");
  expect_invalid([&] { norm(x, {.ord = -1}); }, "expected p > 0");
  expect_invalid([&] { norm(x, {.ord = "max"}); }, "ord is max");
  for (const NormOptions& o :
       {NormOptions{}, NormOptions{.ord = 1, .axis = {{0}}},
        NormOptions{.ord = 3, .axis = {{1}}},
        NormOptions{.ord = kInf, .axis = {{0, 1}}}}) {
    expect_gradients([&](const Tensors& t) { return norm(t[0], o); },
                     {numbers({2, 3})});
  }
}

TEST(L2Normalize, GivesUnitVectorsAndKeepsZero) {
  const Tensor x = constant(Doubles{3, 4, 0, 0}, {2, 2});
  expect_near(math::l2_normalize(x, {{1}}), {0.6, 0.8, 0, 0});
  expect_gradients(
      [](const Tensors& t) { return math::l2_normalize(t[0], {{1}}); },
      {numbers({3, 4})});
}

TEST(Clip, ByValueLetsTheGradientThroughOnTheBounds) {
  const Tensor x = constant({-3., -1., 0., 1., 3.});
  const auto clip = [](const Tensor& t) { return clip_by_value(t, -1, 1); };
  expect_near(clip(x), {-1, -1, 0, 1, 1});
  expect_near(slope(clip, x), {0, 1, 1, 1, 0});
  expect_near(clip_by_value(x, constant({0., 0., 0., 2., 2.}), constant(2.)),
              {0, 0, 0, 2, 2});
  const Tensor whole = constant({-7, 0, 7});
  EXPECT_EQ(ints(clip_by_value(whole, -2, 2)), (Ints{-2, 0, 2}));
  expect_invalid([&] { clip_by_value(whole, 0.5, 2); }, "0.5 does not fit");
  EXPECT_TRUE(std::isnan(clip(constant({std::nan("")})).item<double>()));
}

TEST(Clip, ByNormShrinksOnlyWhatIsLonger) {
  const Tensor x = constant(Doubles{3, 4, 0.3, 0.4, 0, 0}, {3, 2});
  expect_near(clip_by_norm(x, 1, {{1}}), {0.6, 0.8, 0.3, 0.4, 0, 0});
  expect_near(clip_by_norm(constant({3., 4.}), 10), {3, 4});
  const auto clip = [](const Tensor& t) { return clip_by_norm(t, 1); };
  for (const double d : doubles(slope(clip, zeros({2}, float64)))) {
    EXPECT_EQ(d, 1);
  }
  expect_gradients(
      [](const Tensors& t) { return clip_by_norm(t[0], 0.7, {{1}}); },
      {numbers({3, 4})});
}

TEST(Clip, ByGlobalNormScalesAllAlike) {
  const Tensor a = constant({3., 0.}), b = constant(4.);
  expect_near(global_norm({a, {}, b}), {5});
  const auto [small, total] = clip_by_global_norm({a, {}, b}, 2.5);
  expect_near(total, {5});
  expect_near(small[0], {1.5, 0});
  EXPECT_FALSE(small[1].defined());
  expect_near(small[2], {2});
  expect_near(clip_by_global_norm({a, b}, 9).first[0], {3, 0});
  expect_near(clip_by_global_norm({a, b}, 5, constant(10.)).first[1], {2});
  const auto bad = clip_by_global_norm({constant({kInf}), a}, 1).first;
  EXPECT_TRUE(std::isnan(doubles(bad[1])[1]));
  expect_invalid([] { global_norm({}); }, "no tensors");
}

double sigmoid_loss(double z, double x, double q = 1) {
  // log1p(exp(-t)) = -log(sigmoid(t))
  return q * z * std::log1p(std::exp(-x)) + (1 - z) * std::log1p(std::exp(x));
}

TEST(SigmoidCrossEntropy, IsExactForLargeLogits) {
  const Tensor z = constant({0., 1., 0.3, 1., 0.});
  const Tensor x = constant({0.5, -2., 3., 100., -100.});
  Doubles want, weighted;
  for (size_t i = 0; i < 5; ++i) {
    want.push_back(sigmoid_loss(doubles(z)[i], doubles(x)[i]));
    weighted.push_back(sigmoid_loss(doubles(z)[i], doubles(x)[i], 2.5));
  }
  const Tensor got = nn::sigmoid_cross_entropy_with_logits(z, x);
  expect_near(got, want);
  EXPECT_NEAR(doubles(got)[3] / std::exp(-100.), 1, 1e-9);
  EXPECT_NEAR(doubles(got)[4] / std::exp(-100.), 1, 1e-9);
  expect_near(nn::weighted_cross_entropy_with_logits(z, x, constant(2.5)),
              weighted);
}

TEST(SigmoidCrossEntropy, HasItsSlopeAtLogitZero) {
  const Tensor z = constant({0., 0.25, 1.});
  const auto loss = [&](const Tensor& x) {
    return nn::sigmoid_cross_entropy_with_logits(z, x);
  };
  expect_near(slope(loss, zeros({3}, float64)), {0.5, 0.25, -0.5});
  const auto weighted = [&](const Tensor& x) {
    return nn::weighted_cross_entropy_with_logits(z, x, constant(3.));
  };
  // sigmoid(0) = 1/2: (1 - z) / 2 - 3 z / 2.
  expect_near(slope(weighted, zeros({3}, float64)), {0.5, 0, -1.5});
}

TEST(LogitLosses, GradientsOfBothOrdersFollowDifferences) {
  const Tensors in{math::abs(numbers({3, 4})), numbers({3, 4}, 1) * 3.0};
  expect_gradients(
      [](const Tensors& t) {
        return nn::sigmoid_cross_entropy_with_logits(t[0], t[1]);
      },
      in);
  expect_gradients(
      [](const Tensors& t) {
        return nn::weighted_cross_entropy_with_logits(t[0], t[1],
                                                      constant(1.5));
      },
      in);
  for (const bool full : {false, true}) {
    expect_gradients(
        [&](const Tensors& t) {
          return nn::log_poisson_loss(t[0] * 4.0, t[1], full);
        },
        in);
  }
}

TEST(LogPoisson, FullLossAddsStirlingsLogFactorial) {
  const Tensor n = constant({0., 1., 5.}), x = constant({0.5, -1., 1.});
  const double e = std::exp(0.5), f = std::exp(-1.), g = std::exp(1.);
  expect_near(nn::log_poisson_loss(n, x), {e, f + 1, g - 5});
  const double stirling = 5 * std::log(5.) - 5 + 0.5 * std::log(10 * M_PI);
  expect_near(nn::log_poisson_loss(n, x, true), {e, f + 1, g - 5 + stirling});
}

TEST(Composites, PassUnknownDimensionsThroughBothOrders) {
  const Shape any{-2, -3, 4};
  const ReduceOptions middle{.axis = {{1}}};
  const auto of = [&](auto fn) {
    return [fn, middle](const Tensors& x) { return fn(x[0], middle, Site{}); };
  };
  const std::vector<UnknownCase> cases = {
      {"logsumexp", {any}, of(&math::reduce_logsumexp)},
      {"variance", {any}, of(&math::reduce_variance)},
      {"std", {any}, of(&math::reduce_std)},
      {"euclidean", {any}, of(&math::reduce_euclidean_norm)},
      {"prod", {any}, of(&math::reduce_prod)},
      {"cumsum", {any}, [](const Tensors& x) { return math::cumsum(x[0]); }},
      {"cumprod", {any}, [](const Tensors& x) { return math::cumprod(x[0]); }},
      {"cumulative logsumexp",
       {any},
       [](const Tensors& x) { return math::cumulative_logsumexp(x[0]); }},
      {"clip by value",
       {any},
       [](const Tensors& x) { return clip_by_value(x[0], 0, 1); }},
      {"clip by norm",
       {any},
       [](const Tensors& x) { return clip_by_norm(x[0], 1); }},
      {"matrix norm",
       {any},
       [](const Tensors& x) {
         return norm(x[0], {.ord = 1, .axis = {{1, 2}}});
       }},
      {"atan2",
       {any, {4}},
       [](const Tensors& x) { return math::atan2(x[0], x[1]); }},
      {"add_n", {any, any}, [](const Tensors& x) { return math::add_n(x); }},
      {"elu", {any}, [](const Tensors& x) { return nn::elu(x[0]); }},
      {"relu6", {any}, [](const Tensors& x) { return nn::relu6(x[0]); }},
      {"mish", {any}, [](const Tensors& x) { return nn::mish(x[0]); }},
      {"sigmoid loss", {any, any}, [](const Tensors& x) {
         return nn::sigmoid_cross_entropy_with_logits(x[0], x[1]);
       }}};
  for (const UnknownCase& k : cases) expect_gradient_shapes(k);
}

}  // namespace
}  // namespace berth::test
