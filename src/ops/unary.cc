// Elementwise functions of one operand beyond those of elementwise.cc: one
// table.

#include <cmath>
#include <numbers>

#include "berth/ops/array.h"
#include "berth/ops/bitwise.h"
#include "berth/ops/math.h"
#include "ops/families.h"
#include "ops/flow_through.h"
#include "ops/named_call.h"

namespace berth {

namespace math {

Tensor ceil(const Tensor& x, Site s) { return unary<"Ceil">(x, s); }
Tensor round(const Tensor& x, Site s) { return unary<"Round">(x, s); }
Tensor rint(const Tensor& x, Site s) { return unary<"Rint">(x, s); }
Tensor reciprocal(const Tensor& x, Site s) { return unary<"Reciprocal">(x, s); }
Tensor reciprocal_no_nan(const Tensor& x, Site s) {
  return divide_no_nan(scalar_like(x, 1), x, s);
}
Tensor expm1(const Tensor& x, Site s) { return unary<"Expm1">(x, s); }
Tensor sin(const Tensor& x, Site s) { return unary<"Sin">(x, s); }
Tensor cos(const Tensor& x, Site s) { return unary<"Cos">(x, s); }
Tensor tan(const Tensor& x, Site s) { return unary<"Tan">(x, s); }
Tensor asin(const Tensor& x, Site s) { return unary<"Asin">(x, s); }
Tensor acos(const Tensor& x, Site s) { return unary<"Acos">(x, s); }
Tensor atan(const Tensor& x, Site s) { return unary<"Atan">(x, s); }
Tensor sinh(const Tensor& x, Site s) { return unary<"Sinh">(x, s); }
Tensor cosh(const Tensor& x, Site s) { return unary<"Cosh">(x, s); }
Tensor asinh(const Tensor& x, Site s) { return unary<"Asinh">(x, s); }
Tensor acosh(const Tensor& x, Site s) { return unary<"Acosh">(x, s); }
Tensor atanh(const Tensor& x, Site s) { return unary<"Atanh">(x, s); }
Tensor erf(const Tensor& x, Site s) { return unary<"Erf">(x, s); }
Tensor erfc(const Tensor& x, Site s) { return unary<"Erfc">(x, s); }
Tensor erfinv(const Tensor& x, Site s) { return unary<"Erfinv">(x, s); }
Tensor erfcinv(const Tensor& x, Site s) {
  return ndtri(x * 0.5, s) * -std::sqrt(0.5);
}
Tensor ndtri(const Tensor& p, Site s) { return unary<"Ndtri">(p, s); }
Tensor lgamma(const Tensor& x, Site s) { return unary<"Lgamma">(x, s); }
Tensor bessel_i0e(const Tensor& x, Site s) { return unary<"BesselI0e">(x, s); }
Tensor bessel_i1e(const Tensor& x, Site s) { return unary<"BesselI1e">(x, s); }
Tensor bessel_i0(const Tensor& x, Site s) {
  return bessel_i0e(x, s) * exp(abs(x, s), s);
}
Tensor bessel_i1(const Tensor& x, Site s) {
  return bessel_i1e(x, s) * exp(abs(x, s), s);
}
Tensor digamma(const Tensor& x, Site s) { return unary<"Digamma">(x, s); }
Tensor log_sigmoid(const Tensor& x, Site s) { return -softplus(-x, s); }
Tensor softplus(const Tensor& x, Site s) { return unary<"Softplus">(x, s); }
Tensor softsign(const Tensor& x, Site s) { return unary<"Softsign">(x, s); }
Tensor is_nan(const Tensor& x, Site s) { return unary<"IsNan">(x, s); }
Tensor is_inf(const Tensor& x, Site s) { return unary<"IsInf">(x, s); }
Tensor is_finite(const Tensor& x, Site s) { return unary<"IsFinite">(x, s); }

}  // namespace math

namespace bitwise {
Tensor invert(const Tensor& x, Site s) { return unary<"Invert">(x, s); }
}  // namespace bitwise

namespace {

using std::numbers::pi;

struct UnaryFunction {
  const char* name;
  DTypeSet types;
  GradientFn gradient;  // null: not differentiable
  const char* doc;
};

// What jumps between plateaus.
Tensors no_slope(const GradCall& g) { return {zeros_like(g.x(0), {})}; }

Tensor square(const Tensor& x) { return math::square(x, {}); }
Tensor sqrt(const Tensor& x) { return math::sqrt(x, {}); }
Tensor exp(const Tensor& x) { return math::exp(x, {}); }
// Gradients go through the conjugate of the derivative; of real numbers it is
// the derivative.
Tensor conjugate(const Tensor& x) { return math::conj(x, {}); }

constexpr UnaryFunction kUnaryFunctions[] = {
    {"Ceil", kRealFloats, &no_slope, "The least whole number >= x."},
    {"Round", kRealNumbers, &no_slope,
     "The nearest whole number, of two the even one."},
    {"Rint", kRealFloats, &no_slope, "As Round."},
    {"Reciprocal", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{flow_through(g.dy(), conjugate(-square(g.y())))};
     },
     "1 / x."},
    {"Expm1", kInexactTypes,
     [](const GradCall& g) { return Tensors{g.dy() * conjugate(g.y() + 1.0)}; },
     "exp(x) - 1, exact near 0."},
    {"Sin", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{g.dy() * conjugate(math::cos(g.x(0), {}))};
     },
     "Sine of radians."},
    {"Cos", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{-g.dy() * conjugate(math::sin(g.x(0), {}))};
     },
     "Cosine of radians."},
    {"Tan", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{g.dy() * conjugate(square(g.y()) + 1.0)};
     },
     "Tangent of radians."},
    {"Asin", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{over(g.dy(), sqrt(1.0 - square(g.x(0))))};
     },
     "Arcsine in [-pi/2, pi/2]; NaN outside [-1, 1]."},
    {"Acos", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{over(-g.dy(), sqrt(1.0 - square(g.x(0))))};
     },
     "Arccosine in [0, pi]; NaN outside [-1, 1]."},
    {"Atan", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{over(g.dy(), square(g.x(0)) + 1.0)};
     },
     "Arctangent in [-pi/2, pi/2]."},
    {"Sinh", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{g.dy() * conjugate(math::cosh(g.x(0), {}))};
     },
     "Hyperbolic sine."},
    {"Cosh", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{g.dy() * conjugate(math::sinh(g.x(0), {}))};
     },
     "Hyperbolic cosine."},
    {"Asinh", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{g.dy() / conjugate(math::cosh(g.y(), {}))};
     },
     "Inverse of sinh."},
    {"Acosh", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{g.dy() / conjugate(math::sinh(g.y(), {}))};
     },
     "Inverse of cosh; NaN below 1."},
    {"Atanh", kInexactTypes,
     [](const GradCall& g) {
       return Tensors{over(g.dy(), 1.0 - square(g.x(0)))};
     },
     "Inverse of tanh; NaN outside [-1, 1]."},
    {"Erf", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() * (2 / std::sqrt(pi)) * exp(-square(g.x(0)))};
     },
     "2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."},
    {"Erfc", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() * (-2 / std::sqrt(pi)) * exp(-square(g.x(0)))};
     },
     "1 - erf(x)."},
    {"Erfinv", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() * (std::sqrt(pi) / 2) * exp(square(g.y()))};
     },
     "Inverse of erf; NaN outside [-1, 1]."},
    {"Ndtri", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() * std::sqrt(2 * pi) * exp(square(g.y()) * 0.5)};
     },
     "Quantile of the standard normal distribution; NaN outside [0, 1]."},
    {"Lgamma", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() * math::digamma(g.x(0), {})};
     },
     "log |gamma(x)|."},
    {"Digamma", kRealFloats,
     [](const GradCall& g) {
       const Tensor one = scalar_like(g.x(0), 1);
       return Tensors{g.dy() * math::polygamma(one, g.x(0), {})};
     },
     "Derivative of lgamma; NaN at -1, -2, ..."},
    {"BesselI0e", kRealFloats,
     [](const GradCall& g) {
       const Tensor& x = g.x(0);
       return Tensors{g.dy() *
                      (math::bessel_i1e(x, {}) - math::sign(x, {}) * g.y())};
     },
     "Modified Bessel function of order 0, times exp(-|x|)."},
    {"BesselI1e", kRealFloats,
     [](const GradCall& g) {
       const Tensor &x = g.x(0), none = scalar_like(x, 0);
       const Tensor at_0 = math::equal(x, none, {});
       const Tensor by_x =
           where(at_0, scalar_like(x, 0.5),
                 g.y() / where(at_0, scalar_like(x, 1), x, {}), {});
       return Tensors{g.dy() * (math::bessel_i0e(x, {}) -
                                math::sign(x, {}) * g.y() - by_x)};
     },
     "Modified Bessel function of order 1, times exp(-|x|)."},
    {"Softplus", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() * math::sigmoid(g.x(0), {})};
     },
     "log(1 + exp(x))."},
    {"Softsign", kRealFloats,
     [](const GradCall& g) {
       return Tensors{g.dy() / square(math::abs(g.x(0), {}) + 1.0)};
     },
     "x / (1 + |x|)."},
    {"Invert", kEveryInteger, nullptr, "Every bit flipped."},
};

constexpr UnaryFunction kPredicates[] = {
    {"IsNan", kRealFloats, nullptr, "True for NaN."},
    {"IsInf", kRealFloats, nullptr, "True for inf and -inf."},
    {"IsFinite", kRealFloats, nullptr, "True but for NaN, inf and -inf."},
};

}  // namespace

void register_unary_ops(OpRegistry& r) {
  for (const UnaryFunction& f : kUnaryFunctions) {
    OpBuilder op = r.op(f.name);
    op.input("x", f.types).output("y").elementwise().doc(f.doc);
    f.gradient ? op.gradient(f.gradient) : op.not_differentiable();
  }
  for (const UnaryFunction& f : kPredicates) {
    r.op(f.name)
        .input("x", f.types)
        .output("y")
        .infer(&infer_compare)
        .elementwise()
        .not_differentiable()
        .doc(f.doc);
  }
}

}  // namespace berth
