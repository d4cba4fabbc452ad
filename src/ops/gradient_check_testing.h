// Tests of gradients: finite differences against GradientTape.
//
// In float64 and central, so that 1e-6 separates right from wrong. Second
// order comes from checking the gradient itself.

#ifndef BERTH_OPS_GRADIENT_CHECK_TESTING_H_
#define BERTH_OPS_GRADIENT_CHECK_TESTING_H_

#include <cmath>
#include <functional>
#include <vector>

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
void expect_gradient(const Function& fn, const Tensors& x,
                     double tolerance = 1e-6);

// Checks first and second order for every input.
void expect_gradients(const Function& fn, const Tensors& x,
                      double tolerance = 1e-6);

}  // namespace berth::testing

#endif  // BERTH_OPS_GRADIENT_CHECK_TESTING_H_
