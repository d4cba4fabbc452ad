// Tests of gradients: finite differences against GradientTape.
//
// In float64 and central, so that 1e-6 separates right from wrong. Second
// order comes from checking the gradient itself.

#ifndef BERTH_OPS_GRADIENT_CHECK_H_
#define BERTH_OPS_GRADIENT_CHECK_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth::testing {

using Function = std::function<Tensor(const Tensors&)>;

// Returns a float64 tensor of numbers in (-1, 1), none near another: no ties
// and no kinks within the step of a finite difference.
inline Tensor numbers(const Shape& shape, int seed = 0) {
  const int64_t n = shape.num_elements();
  std::vector<double> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double turn =
        static_cast<double>(i + 1) * 0.6180339887 + 0.137 * seed;
    v[i] = 1.9 * (turn - std::floor(turn)) - 0.95;
    if (std::abs(v[i]) < 1e-3) v[i] = 0.01;
  }
  return constant(std::span<const double>(v), shape);
}

// A scalar that weighs the elements of `y` unequally.
inline Tensor weighed(const Tensor& y) {
  return math::reduce_sum(y * (numbers(y.shape(), 7) + 1.5), {}, {});
}

// Expects the tape's gradient of weighed(fn(x)) to be that of differences.
inline void expect_gradient(const Function& fn, const Tensors& x,
                            double tolerance = 1e-6) {
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

// The gradient of weighed(fn(x)) for input k, as a function of x.
inline Function gradient_of(Function fn, size_t k) {
  return [fn, k](const Tensors& x) {
    GradientTape tape;
    for (const Tensor& t : x) tape.watch(t);
    return tape.gradient(weighed(fn(x)), x[k]);
  };
}

// Checks first and second order for every input.
inline void expect_gradients(const Function& fn, const Tensors& x,
                             double tolerance = 1e-6) {
  expect_gradient(fn, x, tolerance);
  for (size_t k = 0; k < x.size(); ++k) {
    SCOPED_TRACE(::testing::Message() << "gradient of input " << k);
    expect_gradient(gradient_of(fn, k), x, tolerance);
  }
}

}  // namespace berth::testing

#endif  // BERTH_OPS_GRADIENT_CHECK_H_
