// Constraints: max norm, non-negative, unit norm, ranges.

#include "berth/keras/constraints.h"

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

constexpr double kNormEpsilon = 1e-7;

void check_limit(const char* type, const char* what, double v, double most) {
  if (v >= 0 && v <= most) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} is {}; expected 0 to {}", type, what, v,
                  most == 1 ? "1" : "a finite number"));
}

Tensor norms_of(const Tensor& x, const Constraint::Axes& axis) {
  return math::sqrt(
      math::reduce_sum(math::square(x), {.axis = axis, .keepdims = true}));
}

// x with norms `wanted` instead of `norms`.
Tensor scaled_to(const Tensor& x, const Tensor& norms, const Tensor& wanted) {
  return x * (wanted / (norms + kNormEpsilon));
}

Constraint constraint_by_name(const std::string& name) {
  using namespace constraints;
  if (name.empty()) return {};
  if (name == "max_norm" || name == "MaxNorm") return MaxNorm();
  if (name == "non_neg" || name == "NonNeg") return NonNeg();
  if (name == "unit_norm" || name == "UnitNorm") return UnitNorm();
  if (name == "min_max_norm" || name == "MinMaxNorm") return MinMaxNorm();
  throw errors::InvalidArgument(
      fmt::format("there is no constraint \"{}\"; expected one of max_norm, "
                  "non_neg, unit_norm, min_max_norm",
                  name));
}

}  // namespace

Constraint::Constraint(const char* name)
    : Constraint(std::string(name ? name : "")) {}
Constraint::Constraint(const std::string& name)
    : Constraint(constraint_by_name(name)) {}
Constraint::Constraint(std::string class_name, Parameters parameters, Axes axis,
                       Fn fn)
    : class_name_(std::move(class_name)),
      parameters_(std::move(parameters)),
      axis_(std::move(axis)),
      fn_(std::move(fn)) {}

namespace constraints {

Constraint MaxNorm(double max_value, Axes axis) {
  check_limit("MaxNorm", "max_value", max_value, 1e300);
  return {"MaxNorm", {{"max_value", max_value}}, axis, [=](const Tensor& x) {
            const Tensor norms = norms_of(x, axis);
            return scaled_to(x, norms, clip_by_value(norms, 0, max_value));
          }};
}

Constraint NonNeg() {
  return {"NonNeg", {}, {}, [](const Tensor& x) {
            return math::maximum(x, scalar_like(x, 0));
          }};
}

Constraint UnitNorm(Axes axis) {
  return {"UnitNorm", {}, axis, [=](const Tensor& x) {
            return x / (norms_of(x, axis) + kNormEpsilon);
          }};
}

Constraint MinMaxNorm(MinMaxNormOptions o) {
  check_limit("MinMaxNorm", "min_value", o.min_value, 1e300);
  check_limit("MinMaxNorm", "max_value", o.max_value, 1e300);
  check_limit("MinMaxNorm", "rate", o.rate, 1);
  if (o.min_value > o.max_value) {
    throw errors::InvalidArgument(fmt::format(
        "MinMaxNorm: min_value is {}, max_value {}; expected at most max_value",
        o.min_value, o.max_value));
  }
  return {"MinMaxNorm",
          {{"min_value", o.min_value},
           {"max_value", o.max_value},
           {"rate", o.rate}},
          o.axis,
          [o](const Tensor& x) {
            const Tensor norms = norms_of(x, o.axis);
            const Tensor inside =
                clip_by_value(norms, o.min_value, o.max_value);
            return scaled_to(x, norms, inside * o.rate + norms * (1 - o.rate));
          }};
}

}  // namespace constraints
}  // namespace berth::keras
