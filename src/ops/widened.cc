#include "ops/widened.h"

#include <fmt/format.h>

#include "berth/ops/math.h"

namespace berth {

namespace {

bool has_16_bits(DType dtype) { return (kHalfTypes & dtype_bit(dtype)) != 0; }

}  // namespace

Tensor widened(const Tensor& x) {
  return has_16_bits(x.dtype()) ? math::cast(x, float32, {}) : x;
}

Tensor rounded_like(const Tensor& y, const Tensor& like) {
  return y.dtype() == like.dtype() ? y : math::cast(y, like.dtype(), {});
}

Tensor parameter_for(const Tensor& x, const Tensor& parameter) {
  const bool narrow =
      parameter.defined() && x.defined() && has_16_bits(x.dtype());
  return narrow ? widened(parameter) : parameter;
}

void check_parameter_dtype(const InferContext& c, int x, int parameter) {
  const DType of = c.dtype(x), is = c.dtype(parameter);
  const DType wanted = has_16_bits(of) ? float32 : of;
  if (is == wanted) return;
  c.fail(fmt::format("{} is {} but {} is {}; expected {}: write math::cast",
                     c.op().input(x).name, name_of(of),
                     c.op().input(parameter).name, name_of(is),
                     name_of(wanted)));
}

void check_epsilon(const InferContext& c) {
  const double epsilon = c.attr<double>("epsilon");
  if (epsilon >= 0) return;
  c.fail(fmt::format("epsilon is {}; expected 0 or more", epsilon));
}

void check_same_dtype(const InferContext& c, int a, int b) {
  if (c.dtype(a) == c.dtype(b)) return;
  c.fail(fmt::format(
      "{} is {} but {} is {}; expected equal dtypes: write math::cast",
      c.op().input(a).name, name_of(c.dtype(a)), c.op().input(b).name,
      name_of(c.dtype(b))));
}

}  // namespace berth
