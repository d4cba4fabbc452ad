// aliases: the functions of math that TensorFlow also has at top level
// (tf.abs is tf.math.abs).

#ifndef BERTH_OPS_ALIASES_H_
#define BERTH_OPS_ALIASES_H_

#include "berth/ops/math.h"
#include "berth/ops/numbers.h"

namespace berth {

using math::abs;
using math::acos;
using math::acosh;
using math::add;
using math::add_n;
using math::argmax;
using math::argmin;
using math::asin;
using math::asinh;
using math::atan;
using math::atan2;
using math::atanh;
using math::cast;
using math::cos;
using math::cosh;
using math::cumsum;
using math::divide;
using math::equal;
using math::exp;
using math::floor;
using math::greater;
using math::greater_equal;
using math::less;
using math::less_equal;
using math::logical_and;
using math::logical_not;
using math::logical_or;
using math::maximum;
using math::minimum;
using math::multiply;
using math::negative;
using math::not_equal;
using math::pow;
using math::reduce_all;
using math::reduce_any;
using math::reduce_logsumexp;
using math::reduce_max;
using math::reduce_mean;
using math::reduce_min;
using math::reduce_prod;
using math::reduce_sum;
using math::round;
using math::scalar_mul;
using math::sigmoid;
using math::sign;
using math::sin;
using math::sinh;
using math::sqrt;
using math::square;
using math::subtract;
using math::tan;
using math::tanh;
using math::truncatediv;
using math::truncatemod;

namespace linalg {
using math::l2_normalize;
}  // namespace linalg

}  // namespace berth

#endif  // BERTH_OPS_ALIASES_H_
