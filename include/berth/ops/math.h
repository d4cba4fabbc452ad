// math: elementwise functions, reductions and products (tf.math, tf.linalg).
//
// Operands broadcast as in NumPy and must have equal dtypes; C++ numbers adapt
// to the tensor's dtype. All throw errors::InvalidArgument for shapes or
// dtypes that do not fit. Thread-safe.

#ifndef BERTH_OPS_MATH_H_
#define BERTH_OPS_MATH_H_

#include <optional>
#include <vector>

#include "berth/tensor.h"

namespace berth {

namespace math {

// Elementwise, [shape of a and b broadcast]; numbers.
Tensor add(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor subtract(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor multiply(const Tensor& a, const Tensor& b, Site site = Site::here());
// True division; floating.
Tensor divide(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor maximum(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor minimum(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor pow(const Tensor& a, const Tensor& b, Site site = Site::here());
// (a - b)^2.
Tensor squared_difference(const Tensor& a, const Tensor& b,
                          Site site = Site::here());

// Elementwise, [shape of x].
Tensor negative(const Tensor& x, Site site = Site::here());
Tensor abs(const Tensor& x, Site site = Site::here());
Tensor sign(const Tensor& x, Site site = Site::here());
Tensor square(const Tensor& x, Site site = Site::here());
Tensor sqrt(const Tensor& x, Site site = Site::here());
Tensor rsqrt(const Tensor& x, Site site = Site::here());
Tensor exp(const Tensor& x, Site site = Site::here());
Tensor log(const Tensor& x, Site site = Site::here());
Tensor log1p(const Tensor& x, Site site = Site::here());
Tensor floor(const Tensor& x, Site site = Site::here());
Tensor sigmoid(const Tensor& x, Site site = Site::here());
Tensor tanh(const Tensor& x, Site site = Site::here());

// Complex numbers and their parts, elementwise. Of real numbers: real and conj
// are x itself, imag 0, angle 0 or pi; abs of complex numbers is real.
// Gradients are TensorFlow's: of a real loss by a complex x, d loss / d re +
// i d loss / d im.
//
// re + i im: float32 or float64 to complex64 or complex128 (tf.complex).
Tensor complex(const Tensor& re, const Tensor& im, Site site = Site::here());
Tensor real(const Tensor& x, Site site = Site::here());
Tensor imag(const Tensor& x, Site site = Site::here());
Tensor angle(const Tensor& x, Site site = Site::here());
Tensor conj(const Tensor& x, Site site = Site::here());

// Comparisons, bool [shape of a and b broadcast].
Tensor equal(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor not_equal(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor less(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor less_equal(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor greater(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor greater_equal(const Tensor& a, const Tensor& b,
                     Site site = Site::here());
Tensor logical_and(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor logical_or(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor logical_not(const Tensor& x, Site site = Site::here());

// Converts the elements; a float becomes an integer by truncation, anything
// becomes bool by comparison with 0 (tf.cast).
Tensor cast(const Tensor& x, DType dtype, Site site = Site::here());

struct ReduceOptions {
  std::optional<std::vector<int64_t>> axis = {};  // all axes when absent
  bool keepdims = false;
};

// Reductions over axes, [x without them], or with 1 in their place
// (tf.reduce_*). Of nothing: sum 0, prod 1, max -inf, mean NaN.
Tensor reduce_sum(const Tensor& x, const ReduceOptions& options = {},
                  Site site = Site::here());
Tensor reduce_mean(const Tensor& x, const ReduceOptions& options = {},
                   Site site = Site::here());
Tensor reduce_max(const Tensor& x, const ReduceOptions& options = {},
                  Site site = Site::here());
Tensor reduce_min(const Tensor& x, const ReduceOptions& options = {},
                  Site site = Site::here());
Tensor reduce_prod(const Tensor& x, const ReduceOptions& options = {},
                   Site site = Site::here());
Tensor reduce_all(const Tensor& x, const ReduceOptions& options = {},
                  Site site = Site::here());
Tensor reduce_any(const Tensor& x, const ReduceOptions& options = {},
                  Site site = Site::here());

// Index of the largest element along `axis`, the first of equals; int64
// [x without axis].
Tensor argmax(const Tensor& x, int64_t axis, Site site = Site::here());

}  // namespace math

struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

// Matrix product, [..., m, k] x [..., k, n] -> [..., m, n], after the
// transposes; leading dimensions broadcast (tf.linalg.matmul).
Tensor matmul(const Tensor& a, const Tensor& b,
              const MatMulOptions& options = {}, Site site = Site::here());
namespace linalg {
using berth::matmul;
}  // namespace linalg

// Operators report the enclosing layer or scope in errors, not a line.
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, double b);
Tensor operator>(const Tensor& a, double b);

}  // namespace berth

#endif  // BERTH_OPS_MATH_H_
