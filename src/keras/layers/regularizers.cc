// Regularizers: L1, L2, orthogonal.

#include "berth/keras/regularizers.h"

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

void check_factor(const char* type, const char* what, double v) {
  if (v >= 0 && std::isfinite(v)) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: {} is {}; expected a finite number, 0 or more", type, what, v));
}

Tensor l1_of(const Tensor& x, double factor) {
  return math::reduce_sum(math::abs(x)) * factor;
}
Tensor l2_of(const Tensor& x, double factor) {
  return math::reduce_sum(math::square(x)) * factor;
}

// Pairs of different rows count once in the sum of the upper triangle.
Tensor orthogonal_penalty(const Tensor& x, double factor, bool rows) {
  if (x.rank() != 2 || !x.shape().is_fully_defined()) {
    throw errors::InvalidArgument(
        fmt::format("OrthogonalRegularizer: the tensor is {}; expected a "
                    "matrix of known size",
                    x.shape().str()));
  }
  const Tensor unit = math::l2_normalize(x, std::vector<int64_t>{rows ? 1 : 0});
  const Tensor cosines =
      matmul(unit, unit, {.transpose_a = !rows, .transpose_b = rows});
  const int64_t n = x.shape()[rows ? 0 : 1];
  const double pairs = static_cast<double>(n) * static_cast<double>(n - 1) / 2;
  const Tensor others = 1.0 - eye(n, -1, {}, x.dtype());
  const Tensor sum = math::reduce_sum(math::abs(cosines * others));
  return sum * (pairs > 0 ? factor * 0.5 / pairs : 0);
}

Regularizer regularizer_by_name(const std::string& name) {
  using namespace regularizers;
  if (name.empty()) return {};
  if (name == "l1" || name == "L1") return L1();
  if (name == "l2" || name == "L2") return L2();
  if (name == "l1_l2" || name == "L1L2") return L1L2(0.01, 0.01);
  if (name == "orthogonal_regularizer" || name == "OrthogonalRegularizer") {
    return OrthogonalRegularizer();
  }
  throw errors::InvalidArgument(
      fmt::format("there is no regularizer \"{}\"; expected one of l1, l2, "
                  "l1_l2, orthogonal_regularizer",
                  name));
}

}  // namespace

Regularizer::Regularizer(const char* name)
    : Regularizer(std::string(name ? name : "")) {}
Regularizer::Regularizer(const std::string& name)
    : Regularizer(regularizer_by_name(name)) {}
Regularizer::Regularizer(std::string class_name, Parameters parameters, Fn fn)
    : class_name_(std::move(class_name)),
      parameters_(std::move(parameters)),
      fn_(std::move(fn)) {}

namespace regularizers {

Regularizer L1(double l1) {
  check_factor("L1", "l1", l1);
  return {"L1", {{"l1", l1}}, [=](const Tensor& x) { return l1_of(x, l1); }};
}
Regularizer L2(double l2) {
  check_factor("L2", "l2", l2);
  return {"L2", {{"l2", l2}}, [=](const Tensor& x) { return l2_of(x, l2); }};
}
Regularizer L1L2(double l1, double l2) {
  check_factor("L1L2", "l1", l1);
  check_factor("L1L2", "l2", l2);
  return {"L1L2", {{"l1", l1}, {"l2", l2}}, [=](const Tensor& x) {
            if (l1 == 0) return l2_of(x, l2);
            return l2 == 0 ? l1_of(x, l1) : l1_of(x, l1) + l2_of(x, l2);
          }};
}
Regularizer OrthogonalRegularizer(OrthogonalOptions o) {
  check_factor("OrthogonalRegularizer", "factor", o.factor);
  if (o.mode != "rows" && o.mode != "columns") {
    throw errors::InvalidArgument(
        fmt::format("OrthogonalRegularizer: mode is \"{}\"; expected \"rows\" "
                    "or \"columns\"",
                    o.mode));
  }
  const bool rows = o.mode == "rows";
  return {"OrthogonalRegularizer",
          {{"factor", o.factor}, {rows ? "rows" : "columns", 1}},
          [factor = o.factor, rows](const Tensor& x) {
            return orthogonal_penalty(x, factor, rows);
          }};
}

}  // namespace regularizers
}  // namespace berth::keras
