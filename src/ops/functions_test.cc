// Functions at their edges, where the suites compare kernels with themselves.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "berth/gradient_tape.h"
#include "berth/ops/bitwise.h"
#include "berth/ops/nn.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

using testing::expect_gradients;
using testing::numbers;

Doubles slopes(const std::function<Tensor(const Tensor&)>& fn,
               const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return doubles(tape.gradient(fn(x), x));
}

TEST(Division, OfIntegersByZeroIsAnErrorThatNamesTheOp) {
  const Tensor a = constant({1, 2}), b = constant({1, 0});
  for (const auto fn : {&math::floordiv, &math::floormod, &math::truncatediv,
                        &math::truncatemod}) {
    expect_invalid([&] { doubles(fn(a, b, Site::here())); },
                   "division by zero");
  }
}

TEST(Division, OfTheLeastIntegerByMinusOneWrapsAround) {
  const int least = std::numeric_limits<int>::min();
  const Tensor a = constant({least}), b = constant({-1});
  EXPECT_EQ(math::floordiv(a, b).item<int>(), least);
  EXPECT_EQ(math::floormod(a, b).item<int>(), 0);
  EXPECT_EQ(math::truncatediv(a, b).item<int>(), least);
  EXPECT_EQ(math::truncatemod(a, b).item<int>(), 0);
}

TEST(Division, FloorsOrTruncates) {
  const Tensor a = constant({7, -7, 7, -7}), b = constant({2, 2, -2, -2});
  EXPECT_EQ(ints(math::floordiv(a, b)), (Ints{3, -4, -4, 3}));
  EXPECT_EQ(ints(math::mod(a, b)), (Ints{1, 1, -1, -1}));
  EXPECT_EQ(ints(math::truncatediv(a, b)), (Ints{3, -3, -3, 3}));
  EXPECT_EQ(ints(math::truncatemod(a, b)), (Ints{1, -1, 1, -1}));
}

TEST(Logical, XorIsOfBoolAlone) {
  const Tensor a = constant({false, false, true, true});
  const Tensor b = constant({false, true, false, true});
  EXPECT_EQ(ints(math::logical_xor(a, b)), (Ints{0, 1, 1, 0}));
  EXPECT_THROW(math::logical_xor(constant({1}), constant({2})),
               errors::InvalidArgument);
}

TEST(Functions, CompositesAreWhatTheyAreCalled) {
  EXPECT_EQ(doubles(math::reciprocal_no_nan(constant({0., 4., -kInf}))),
            (Doubles{0, 0.25, 0}));
  EXPECT_NEAR(math::erfcinv(math::erfc(constant(0.7))).item<double>(), 0.7,
              1e-14);
  EXPECT_NEAR(math::erfcinv(math::erfc(constant(-1.5))).item<double>(), -1.5,
              1e-14);
  EXPECT_NEAR(math::log_sigmoid(constant(-800.)).item<double>(), -800, 1e-12);
  EXPECT_NEAR(math::log_sigmoid(constant(40.)).item<double>() / -std::exp(-40.),
              1, 1e-9);
  EXPECT_EQ(doubles(math::scalar_mul(2, constant({1., -3.}))),
            (Doubles{2, -6}));
  EXPECT_EQ(doubles(math::accumulate_n({constant({1.}), constant({2.})})),
            (Doubles{3}));
  expect_invalid(
      [] {
        math::add_n({ones({2}), ones({3})});
      },
      "expected equal shapes");
  expect_invalid(
      [] {
        math::add_n({ones({1}), ones({3})});
      },
      "expected equal shapes");
  EXPECT_THROW(math::add_n({}), errors::InvalidArgument);
}

TEST(Activations, CompositesAreWhatTheyAreCalled) {
  const double x = 1.7;
  const Tensor t = constant({x, -x});
  const double s = 1 / (1 + std::exp(-x));
  const auto near = [](const Tensor& got, Doubles want) {
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(doubles(got)[i], want[i], 1e-14);
    }
  };
  near(nn::silu(t), {x * s, -x * (1 - s)});
  near(nn::swish(t), {x * s, -x * (1 - s)});
  near(nn::hard_sigmoid(t), {(x + 3) / 6, (3 - x) / 6});
  near(nn::hard_swish(t), {x * (x + 3) / 6, -x * (3 - x) / 6});
  near(nn::mish(t), {x * std::tanh(std::log1p(std::exp(x))),
                     -x * std::tanh(std::log1p(std::exp(-x)))});
  EXPECT_EQ(doubles(nn::hard_sigmoid(constant({-4., 4.}))), (Doubles{0, 1}));
  for (const auto fn : {&nn::silu, &nn::hard_swish, &nn::mish}) {
    expect_gradients([&](const Tensors& in) { return fn(in[0], {}); },
                     {numbers({3, 4})});
  }
}

TEST(Activations, SlopesAtTheirKinksAreTensorFlows) {
  const auto at = [](auto fn, double x) {
    return slopes([&](const Tensor& t) { return fn(t, {}); }, constant({x}))[0];
  };
  EXPECT_EQ(at(&nn::elu, 0), 1);
  EXPECT_EQ(at(&nn::relu6, 0), 0);
  EXPECT_EQ(at(&nn::relu6, 6), 0);
  EXPECT_NEAR(at(&nn::selu, 0), 1.0507009873554805, 1e-15);
  EXPECT_EQ(at(&math::softsign, 0), 1);
  EXPECT_EQ(slopes([](const Tensor& t) { return nn::leaky_relu(t, 0.3); },
                   constant({0.}))[0],
            0.3);
  // The side that is not taken cannot spoil the other.
  EXPECT_EQ(at(&nn::elu, kInf), 1);
  EXPECT_EQ(at(&nn::elu, -kInf), 0);
}

TEST(Functions, SlopesAtEdgesAreTensorFlows) {
  const auto of = [](Tensor (*fn)(const Tensor&, const Tensor&, Site), double x,
                     double y) {
    const Tensor a = constant({x}), b = constant({y});
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    const Tensors d = tape.gradient(fn(a, b, {}), {a, b});
    return Doubles{d[0].item<double>(), d[1].item<double>()};
  };
  EXPECT_EQ(of(&math::divide_no_nan, 3, 0), (Doubles{0, 0}));
  EXPECT_EQ(of(&math::multiply_no_nan, kInf, 0)[0], 0);
  EXPECT_EQ(of(&math::xlogy, 0, 0), (Doubles{0, 0}));
  EXPECT_EQ(of(&math::xlog1py, 0, -1), (Doubles{0, 0}));
  EXPECT_EQ(of(&math::xdivy, 0, 0), (Doubles{0, 0}));
  EXPECT_EQ(of(&math::nextafter, 1, 2), (Doubles{1, 0}));
  EXPECT_EQ(of(&math::floormod, 7.5, 2), (Doubles{1, -3}));
  EXPECT_EQ(of(&math::floormod, -7.5, 2), (Doubles{1, 4}));
  EXPECT_EQ(of(&math::truncatemod, -7.5, 2), (Doubles{1, 3}));
  EXPECT_EQ(
      slopes([](const Tensor& t) { return math::asin(t); }, constant({1.}))[0],
      kInf);
}

// SqrtGrad, RsqrtGrad and the gradient of 1 / x, as TensorFlow computes them.
TEST(Functions, NothingFlowsBackIntoAPoleFromNothing) {
  struct Case {
    Tensor (*fn)(const Tensor&, Site);
    double slope;  // at 4
  };
  for (const Case& c : {Case{&math::sqrt, 0.25}, Case{&math::rsqrt, -0.0625},
                        Case{&math::reciprocal, -0.0625}}) {
    for (const DType type : {float32, float64, bfloat16, float16, complex64}) {
      if (c.fn == &math::reciprocal && is_complex(type)) continue;
      const auto of = [&](const Tensor& x) { return c.fn(x, {}); };
      const Tensor x = math::cast(constant({0., -0., -1., 4.}), type);
      const auto branch = [&](const Tensor& v) {
        const Tensor taken = constant({false, false, false, true});
        return where(taken, of(v), zeros_like(v));
      };
      GradientTape tape;
      tape.watch(x);
      const Tensor d = tape.gradient(branch(x), x);
      EXPECT_EQ(doubles(math::cast(math::real(d), float64)),
                (Doubles{0, 0, 0, c.slope}))
          << name_of(type);
    }
    // Something does flow: the slope is infinite. The derivative of the slope
    // in what flows is the slope, also where that is 0.
    const auto twice = [&](const Tensor& x) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = math::square(c.fn(x, {}) - 1.0);
      return tape.gradient(y, x);
    };
    EXPECT_TRUE(std::isinf(slopes([&](const Tensor& x) { return c.fn(x, {}); },
                                  constant({0.}))[0]));
    const double at_1 = slopes(twice, constant({1.}))[0];
    EXPECT_EQ(at_1, c.fn == &math::sqrt || c.fn == &math::rsqrt ? 0.5 : 2);
  }
}

// Its first result is -inf, of which there are no differences.
TEST(CumulativeLogsumexp, ExclusiveGradientsFollowDifferences) {
  for (const bool reverse : {false, true}) {
    expect_gradients(
        [&](const Tensors& x) {
          const Tensor y = math::cumulative_logsumexp(
              x[0], {.axis = 1, .exclusive = true, .reverse = reverse});
          return reverse ? y[{slice(), slice(0, 4)}]
                         : y[{slice(), slice(1, 5)}];
        },
        {numbers({2, 5})});
  }
}

TEST(Scans, RefuseScalarsAndAxesOutOfRange) {
  expect_invalid([] { math::cumsum(constant(1.f)); }, "is a scalar");
  expect_invalid([] { math::cumprod(ones({2}), {.axis = 1}); }, "Cumprod");
}

TEST(Bitwise, ShiftsByAnyNumberOfBits) {
  const Tensor x = constant({5, -5, 1});
  EXPECT_EQ(ints(bitwise::right_shift(x, constant({99, 99, -3}))),
            (Ints{0, -1, 1}));
  EXPECT_EQ(ints(bitwise::left_shift(x, constant({1, 1, 31}))),
            (Ints{10, -10, -2147483648}));
  EXPECT_EQ(ints(bitwise::invert(x)), (Ints{-6, 4, -2}));
}

}  // namespace
}  // namespace berth::test
