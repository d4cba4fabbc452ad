// math: elementwise functions, reductions and products (tf.math, tf.linalg).
//
// Operands broadcast as in NumPy and must have equal dtypes; C++ numbers adapt
// to the tensor's dtype. All throw errors::InvalidArgument for shapes or
// dtypes that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_MATH_H_
#define BERTH_OPS_MATH_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
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
// For integers b must not be negative: that is errors::InvalidArgument, on
// asynchronous devices when the result is read.
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

// Complex numbers and their parts, elementwise. With real numbers real and conj
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
// To integers: up; to the nearest, halves to even (round and rint; round takes
// integers too).
Tensor ceil(const Tensor& x, Site site = Site::here());
Tensor round(const Tensor& x, Site site = Site::here());
Tensor rint(const Tensor& x, Site site = Site::here());
// 1 / x; the second is 0 where x is 0.
Tensor reciprocal(const Tensor& x, Site site = Site::here());
Tensor reciprocal_no_nan(const Tensor& x, Site site = Site::here());
// exp(x) - 1.
Tensor expm1(const Tensor& x, Site site = Site::here());

// Angles are in radians.
Tensor sin(const Tensor& x, Site site = Site::here());
Tensor cos(const Tensor& x, Site site = Site::here());
Tensor tan(const Tensor& x, Site site = Site::here());
Tensor asin(const Tensor& x, Site site = Site::here());
Tensor acos(const Tensor& x, Site site = Site::here());
Tensor atan(const Tensor& x, Site site = Site::here());
Tensor sinh(const Tensor& x, Site site = Site::here());
Tensor cosh(const Tensor& x, Site site = Site::here());
Tensor asinh(const Tensor& x, Site site = Site::here());
Tensor acosh(const Tensor& x, Site site = Site::here());
Tensor atanh(const Tensor& x, Site site = Site::here());
// The angle of the point (x, y) in [-pi, pi].
Tensor atan2(const Tensor& y, const Tensor& x, Site site = Site::here());

// The error function, 1 - erf, their inverses, and the quantile of the
// standard normal distribution.
Tensor erf(const Tensor& x, Site site = Site::here());
Tensor erfc(const Tensor& x, Site site = Site::here());
Tensor erfinv(const Tensor& x, Site site = Site::here());
Tensor erfcinv(const Tensor& x, Site site = Site::here());
Tensor ndtri(const Tensor& p, Site site = Site::here());
// log |gamma(x)|, its derivative, and the derivative of order a of that; a
// holds integers. NaN at the poles -1, -2, ... of digamma.
Tensor lgamma(const Tensor& x, Site site = Site::here());
Tensor digamma(const Tensor& x, Site site = Site::here());
Tensor polygamma(const Tensor& a, const Tensor& x, Site site = Site::here());
// Modified Bessel functions of the first kind of order 0 and 1; those with an e
// are multiplied by exp(-|x|). On host devices.
Tensor bessel_i0(const Tensor& x, Site site = Site::here());
Tensor bessel_i0e(const Tensor& x, Site site = Site::here());
Tensor bessel_i1(const Tensor& x, Site site = Site::here());
Tensor bessel_i1e(const Tensor& x, Site site = Site::here());
// Hurwitz' zeta: sum of (q + k)^-x over k = 0, 1, ...; x > 1.
Tensor zeta(const Tensor& x, const Tensor& q, Site site = Site::here());

// log(sigmoid(x)), log(1 + exp(x)), x / (1 + |x|).
Tensor log_sigmoid(const Tensor& x, Site site = Site::here());
Tensor softplus(const Tensor& x, Site site = Site::here());
Tensor softsign(const Tensor& x, Site site = Site::here());

// bool [shape of x].
Tensor is_nan(const Tensor& x, Site site = Site::here());
Tensor is_inf(const Tensor& x, Site site = Site::here());
Tensor is_finite(const Tensor& x, Site site = Site::here());

// Quotient rounded down, and the remainder, with the sign of b; numbers.
// Integers divided by 0 are errors.
Tensor floordiv(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor floormod(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor mod(const Tensor& a, const Tensor& b, Site site = Site::here());
// Quotient rounded towards 0 (integers), and the remainder, with the sign of a
// (numbers).
Tensor truncatediv(const Tensor& a, const Tensor& b, Site site = Site::here());
Tensor truncatemod(const Tensor& a, const Tensor& b, Site site = Site::here());
// a / b and a * b, which are 0 where b is 0, for any a.
Tensor divide_no_nan(const Tensor& a, const Tensor& b,
                     Site site = Site::here());
Tensor multiply_no_nan(const Tensor& a, const Tensor& b,
                       Site site = Site::here());
// x log(y), x log(1 + y), x / y, which are 0 where x is 0, for any y.
Tensor xlogy(const Tensor& x, const Tensor& y, Site site = Site::here());
Tensor xlog1py(const Tensor& x, const Tensor& y, Site site = Site::here());
Tensor xdivy(const Tensor& x, const Tensor& y, Site site = Site::here());
// The next representable number after `a` towards `b`.
Tensor nextafter(const Tensor& a, const Tensor& b, Site site = Site::here());

// Sum of tensors of one shape and dtype, at least one (tf.add_n).
Tensor add_n(const Tensors& parts, Site site = Site::here());
Tensor accumulate_n(const Tensors& parts, Site site = Site::here());
// x * scalar, for a number that x's dtype can hold.
Tensor scalar_mul(double scalar, const Tensor& x, Site site = Site::here());

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
Tensor logical_xor(const Tensor& a, const Tensor& b, Site site = Site::here());

// Converts the elements; a float becomes an integer by truncation, anything
// becomes bool by comparison with 0 (tf.cast). Every device gives equal values:
// a float beyond an integer type becomes its lowest or largest number and NaN
// 0; integers wrap around; values too large for a float type become infinite.
Tensor cast(const Tensor& x, DType dtype, Site site = Site::here());

// Axes of a tensor: 1, {1}, {0, 1} or a vector; all if absent. Negative ones
// count from the end.
class Axes : public std::optional<std::vector<int64_t>> {
 public:
  using List = std::vector<int64_t>;
  Axes() = default;
  Axes(std::nullopt_t) {}        // NOLINT: .axis = ...
  Axes(std::integral auto axis)  // NOLINT
      : optional(List{static_cast<int64_t>(axis)}) {}
  Axes(std::initializer_list<int64_t> axes)  // NOLINT
      : optional(List(axes)) {}
  Axes(List axes) : optional(std::move(axes)) {}                 // NOLINT
  Axes(std::optional<List> axes) : optional(std::move(axes)) {}  // NOLINT
};

// The single axis of some ops: argmax(x, {.axis = 1}) is argmax(x, 1).
struct AxisOptions {
  int64_t axis;
};

struct ReduceOptions {
  Axes axis = {};
  bool keepdims = false;
};

// Reductions over axes, [x without them], or with 1 in their place
// (tf.reduce_*). If empty: sum 0, prod 1, max -inf, mean NaN.
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

// Index of the largest, smallest element along `axis`, the first on a tie;
// int64 [x without axis].
Tensor argmax(const Tensor& x, int64_t axis, Site site = Site::here());
Tensor argmin(const Tensor& x, int64_t axis, Site site = Site::here());
inline Tensor argmax(const Tensor& x, const AxisOptions& options,
                     Site site = Site::here()) {
  return argmax(x, options.axis, site);
}
inline Tensor argmin(const Tensor& x, const AxisOptions& options,
                     Site site = Site::here()) {
  return argmin(x, options.axis, site);
}

// log(sum(exp(x))) without overflow; -inf if empty.
Tensor reduce_logsumexp(const Tensor& x, const ReduceOptions& options = {},
                        Site site = Site::here());
// Mean squared distance from the mean, and its root.
Tensor reduce_variance(const Tensor& x, const ReduceOptions& options = {},
                       Site site = Site::here());
Tensor reduce_std(const Tensor& x, const ReduceOptions& options = {},
                  Site site = Site::here());
// sqrt(sum(x^2)).
Tensor reduce_euclidean_norm(const Tensor& x, const ReduceOptions& options = {},
                             Site site = Site::here());
// Number of nonzero elements, int64; numbers and bool.
Tensor count_nonzero(const Tensor& x, const ReduceOptions& options = {},
                     Site site = Site::here());
// Share of zero elements, a float32 scalar.
Tensor zero_fraction(const Tensor& x, Site site = Site::here());

struct ScanOptions {
  int64_t axis = 0;
  bool exclusive = false;  // without the element itself
  bool reverse = false;    // from the end
};
// Sum, product, logsumexp of the elements up to each along an axis,
// [shape of x].
Tensor cumsum(const Tensor& x, const ScanOptions& options = {},
              Site site = Site::here());
Tensor cumprod(const Tensor& x, const ScanOptions& options = {},
               Site site = Site::here());
Tensor cumulative_logsumexp(const Tensor& x, const ScanOptions& options = {},
                            Site site = Site::here());

// x / sqrt(max(sum(x^2), epsilon)) over `axis` (all if absent).
Tensor l2_normalize(const Tensor& x, const Axes& axis = {},
                    double epsilon = 1e-12, Site site = Site::here());

}  // namespace math

// An operand is transposed, or its adjoint, the conjugate transpose, is taken:
// one of the two.
struct MatMulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool adjoint_a = false;
  bool adjoint_b = false;
};

// Matrix product, [..., m, k] x [..., k, n] -> [..., m, n], after the
// transposes; leading dimensions broadcast (tf.linalg.matmul).
Tensor matmul(const Tensor& a, const Tensor& b,
              const MatMulOptions& options = {}, Site site = Site::here());
namespace linalg {
using berth::matmul;
}  // namespace linalg
namespace math {
using berth::matmul;
}  // namespace math

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
// The remainder with the sign of the divisor (floormod), as in Python.
Tensor operator%(const Tensor& a, const Tensor& b);
Tensor operator%(const Tensor& a, double b);
Tensor operator%(double a, const Tensor& b);
// Logical for bool tensors, bit by bit for whole numbers, as in TensorFlow.
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);
Tensor operator~(const Tensor& x);
Tensor operator!(const Tensor& x);  // logical_not
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, double b);
Tensor operator<=(const Tensor& a, double b);
Tensor operator>(const Tensor& a, double b);
Tensor operator>=(const Tensor& a, double b);
Tensor operator<(double a, const Tensor& b);
Tensor operator<=(double a, const Tensor& b);
Tensor operator>(double a, const Tensor& b);
Tensor operator>=(double a, const Tensor& b);
// `a = a + b`: another tensor, as in Python.
Tensor& operator+=(Tensor& a, const Tensor& b);
Tensor& operator-=(Tensor& a, const Tensor& b);
Tensor& operator*=(Tensor& a, const Tensor& b);
Tensor& operator/=(Tensor& a, const Tensor& b);
Tensor& operator+=(Tensor& a, double b);
Tensor& operator-=(Tensor& a, double b);
Tensor& operator*=(Tensor& a, double b);
Tensor& operator/=(Tensor& a, double b);
// Elementwise, as in TensorFlow 2: a bool tensor, not a bool.
Tensor operator==(const Tensor& a, const Tensor& b);
Tensor operator!=(const Tensor& a, const Tensor& b);
Tensor operator==(const Tensor& a, double b);
Tensor operator!=(const Tensor& a, double b);
Tensor operator==(double a, const Tensor& b);
Tensor operator!=(double a, const Tensor& b);

}  // namespace berth

#endif  // BERTH_OPS_MATH_H_
