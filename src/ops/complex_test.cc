#include <gtest/gtest.h>

#include <complex>
#include <numbers>

#include "berth/berth.h"
#include "ops/testing.h"

namespace berth {
namespace {

using test::expect_invalid;
using C64 = std::complex<float>;
using C128 = std::complex<double>;

// d loss / d re + i d loss / d im by central differences.
C128 slope(const std::function<double(C128)>& loss, C128 z) {
  constexpr double h = 1e-6;
  const auto along = [&](C128 d) {
    return (loss(z + h * d) - loss(z - h * d)) / (2 * h);
  };
  return {along({1, 0}), along({0, 1})};
}

C128 gradient(const std::function<Tensor(const Tensor&)>& fn, C128 z) {
  const Tensor x = constant(z);
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(fn(x), x).item<C128>();
}

void expect_near(C128 got, C128 want) {
  EXPECT_NEAR(got.real(), want.real(), 1e-6);
  EXPECT_NEAR(got.imag(), want.imag(), 1e-6);
}

TEST(Complex, PartsGoInAndComeOut) {
  const Tensor z = math::complex(constant({3.f, 0.f}), constant({-4.f, 2.f}));
  EXPECT_EQ(z.dtype(), complex64);
  EXPECT_EQ(z.to_vector<C64>(), (std::vector<C64>{{3, -4}, {0, 2}}));
  EXPECT_EQ(math::real(z).to_vector<float>(), (std::vector<float>{3, 0}));
  EXPECT_EQ(math::imag(z).to_vector<float>(), (std::vector<float>{-4, 2}));
  EXPECT_EQ(math::abs(z).to_vector<float>(), (std::vector<float>{5, 2}));
  EXPECT_EQ(math::abs(z).dtype(), float32);
  EXPECT_EQ(math::conj(z).to_vector<C64>(),
            (std::vector<C64>{{3, 4}, {0, -2}}));
  EXPECT_FLOAT_EQ(math::angle(z).to_vector<float>()[1],
                  static_cast<float>(std::numbers::pi / 2));
}

TEST(Complex, OfRealNumbersThePartsAreWhatTheyAre) {
  const Tensor x = constant({-2.f, 3.f});
  EXPECT_EQ(math::real(x).impl(), x.impl());
  EXPECT_EQ(math::conj(x).impl(), x.impl());
  EXPECT_EQ(math::imag(x).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(math::angle(x).to_vector<float>(),
            (std::vector<float>{static_cast<float>(std::numbers::pi), 0}));
}

// |z|^2 written three ways has the gradient 2 z.
TEST(Complex, GradientOfARealLossPointsUphill) {
  const C128 z{1.5, -0.5};
  const C128 want = slope([](C128 x) { return std::norm(x); }, z);
  expect_near(want, 2.0 * z);
  expect_near(
      gradient([](const Tensor& x) { return math::real(x * math::conj(x)); },
               z),
      want);
  expect_near(
      gradient([](const Tensor& x) { return math::square(math::abs(x)); }, z),
      want);
  expect_near(gradient(
                  [](const Tensor& x) {
                    return math::square(math::real(x)) +
                           math::square(math::imag(x));
                  },
                  z),
              want);
}

TEST(Complex, GradientsOfHolomorphicFunctionsConjugate) {
  const C128 z{0.7, 0.4}, w{-0.3, 1.1};
  const auto check = [&](const std::function<Tensor(const Tensor&)>& fn,
                         const std::function<C128(C128)>& plain) {
    expect_near(gradient([&](const Tensor& x) { return math::real(fn(x)); }, z),
                slope([&](C128 x) { return plain(x).real(); }, z));
    expect_near(gradient([&](const Tensor& x) { return math::imag(fn(x)); }, z),
                slope([&](C128 x) { return plain(x).imag(); }, z));
  };
  const Tensor c = constant(w);
  check([&](const Tensor& x) { return x * c; }, [&](C128 x) { return x * w; });
  check([&](const Tensor& x) { return c / x; }, [&](C128 x) { return w / x; });
  check([&](const Tensor& x) { return c - x; }, [&](C128 x) { return w - x; });
  check([](const Tensor& x) { return math::exp(-x); },
        [](C128 x) { return std::exp(-x); });
  check([&](const Tensor& x) { return math::pow(x, c); },
        [&](C128 x) { return std::pow(x, w); });
  check([&](const Tensor& x) { return math::pow(c, x); },
        [&](C128 x) { return std::pow(w, x); });
  check(
      [&](const Tensor& x) {
        return reshape(matmul(reshape(x, {1, 1}), reshape(c, {1, 1})), {});
      },
      [&](C128 x) { return x * w; });
}

TEST(Complex, TheModulusHasNoGradientAtZeroAndSaysZero) {
  expect_near(gradient([](const Tensor& x) { return math::abs(x); }, {0, 0}),
              {0, 0});
}

TEST(Complex, TracedAndTapedItIsTheSame) {
  const auto step = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor loss = math::reduce_sum(math::abs(x * x));
    return tape.gradient(loss, x);
  });
  const Tensor x = constant({C64{1, 2}, C64{-3, 0.5f}});
  const auto got = step(x).to_vector<C64>();
  for (size_t i = 0; i < 2; ++i) {  // |x^2| = |x|^2
    EXPECT_NEAR(got[i].real(), 2 * x.to_vector<C64>()[i].real(), 1e-5);
    EXPECT_NEAR(got[i].imag(), 2 * x.to_vector<C64>()[i].imag(), 1e-5);
  }
}

// z^H z is the sum of |z_i|^2, w z^H the table of w_i conj(z_j).
TEST(Complex, AProductTakesTheAdjointOfEitherOperand) {
  const Tensor z = reshape(constant({C64{1, 2}, C64{-3, 0.5f}}), {2, 1});
  EXPECT_EQ(matmul(z, z, {.adjoint_a = true}).to_vector<C64>(),
            (std::vector<C64>{{14.25f, 0}}));
  const Tensor w = reshape(constant({C64{0, 1}}), {1, 1});
  EXPECT_EQ(matmul(w, z, {.adjoint_b = true}).to_vector<C64>(),
            (std::vector<C64>{{2, 1}, {0.5f, -3}}));
  const Tensor x = reshape(constant({1.f, 2.f, 3.f, 4.f}), {2, 2});
  EXPECT_EQ(matmul(x, x, {.adjoint_a = true}).to_vector<float>(),
            matmul(x, x, {.transpose_a = true}).to_vector<float>());
  expect_invalid(
      [&] { matmul(x, x, {.transpose_b = true, .adjoint_b = true}); },
      "transpose and adjoint of the same operand");
}

TEST(Complex, TakesPartsOfOneFloatingDtypeOnly) {
  expect_invalid([] { math::complex(constant({1}), constant({2})); },
                 "real is int32; expected one of float32, float64");
  expect_invalid([] { math::complex(constant(1.f), constant(2.0)); },
                 "expected equal dtypes");
}

}  // namespace
}  // namespace berth
