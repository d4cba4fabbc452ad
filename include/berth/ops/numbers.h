// numbers: functions of two tensors, with a C++ number in place of one.
//
// The number takes the dtype of the tensor, as with operators:
//   math::maximum(x, 0.3), math::pow(2, x)
// Throws errors::InvalidArgument when the dtype cannot hold it.

#ifndef BERTH_OPS_NUMBERS_H_
#define BERTH_OPS_NUMBERS_H_

#include "berth/ops/math.h"

namespace berth {

namespace detail {
// Returns a scalar of the dtype of `like`.
Tensor number_like(const Tensor& like, double value, Site site);
}  // namespace detail

namespace math {

#define BERTH_WITH_A_NUMBER(function)                          \
  inline Tensor function(const Tensor& a, double b,            \
                         Site site = Site::here()) {           \
    return function(a, detail::number_like(a, b, site), site); \
  }                                                            \
  inline Tensor function(double a, const Tensor& b,            \
                         Site site = Site::here()) {           \
    return function(detail::number_like(b, a, site), b, site); \
  }

BERTH_WITH_A_NUMBER(add)
BERTH_WITH_A_NUMBER(subtract)
BERTH_WITH_A_NUMBER(multiply)
BERTH_WITH_A_NUMBER(divide)
BERTH_WITH_A_NUMBER(divide_no_nan)
BERTH_WITH_A_NUMBER(floordiv)
BERTH_WITH_A_NUMBER(floormod)
BERTH_WITH_A_NUMBER(mod)
BERTH_WITH_A_NUMBER(maximum)
BERTH_WITH_A_NUMBER(minimum)
BERTH_WITH_A_NUMBER(pow)
BERTH_WITH_A_NUMBER(squared_difference)
BERTH_WITH_A_NUMBER(equal)
BERTH_WITH_A_NUMBER(not_equal)
BERTH_WITH_A_NUMBER(less)
BERTH_WITH_A_NUMBER(less_equal)
BERTH_WITH_A_NUMBER(greater)
BERTH_WITH_A_NUMBER(greater_equal)

#undef BERTH_WITH_A_NUMBER

}  // namespace math

}  // namespace berth

#endif  // BERTH_OPS_NUMBERS_H_
