#include <gtest/gtest.h>

#include "berth/gradient_tape.h"
#include "ops/gradient_check_testing.h"

namespace berth::testing {

namespace {

// The gradient of weighed(fn(x)) for input k, as a function of x.
Function gradient_of(Function fn, size_t k) {
  return [fn, k](const Tensors& x) {
    GradientTape tape;
    for (const Tensor& t : x) tape.watch(t);
    return tape.gradient(weighed(fn(x)), x[k]);
  };
}

}  // namespace

void expect_gradient(const Function& fn, const Tensors& x, double tolerance) {
  const double step = 1e-5;
  GradientTape tape;
  std::vector<Source> sources;
  for (const Tensor& t : x) {
    tape.watch(t);
    sources.emplace_back(t);
  }
  const Tensors got = tape.gradient(weighed(fn(x)), sources);
  for (size_t k = 0; k < x.size(); ++k) {
    const std::vector<double> at = x[k].to_vector<double>();
    std::vector<double> d(at.size(), 0.0);
    if (got[k].defined()) {
      ASSERT_EQ(got[k].shape(), x[k].shape()) << "input " << k;
      d = got[k].to_vector<double>();
    }
    for (size_t i = 0; i < at.size(); ++i) {
      double value[2];
      for (int side : {0, 1}) {
        std::vector<double> moved = at;
        moved[i] += side ? step : -step;
        Tensors args = x;
        args[k] = constant(std::span<const double>(moved), x[k].shape());
        value[side] = weighed(fn(args)).item<double>();
      }
      const double want = (value[1] - value[0]) / (2 * step);
      EXPECT_NEAR(d[i], want, tolerance * std::max(1.0, std::abs(want)))
          << "input " << k << ", element " << i;
    }
  }
}

void expect_gradients(const Function& fn, const Tensors& x, double tolerance) {
  expect_gradient(fn, x, tolerance);
  for (size_t k = 0; k < x.size(); ++k) {
    SCOPED_TRACE(::testing::Message() << "gradient of input " << k);
    expect_gradient(gradient_of(fn, k), x, tolerance);
  }
}

}  // namespace berth::testing
