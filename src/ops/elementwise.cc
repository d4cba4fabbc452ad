// Elementwise arithmetic and functions.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/families.h"
#include "ops/flow_through.h"
#include "ops/op_call.h"

namespace berth {

namespace math {

Tensor add(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("AddV2");
  set_site(site);
  return call1(op, a, b);
}
Tensor subtract(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("Sub");
  set_site(site);
  return call1(op, a, b);
}
Tensor multiply(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("Mul");
  set_site(site);
  return call1(op, a, b);
}
Tensor divide(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("RealDiv");
  set_site(site);
  return call1(op, a, b);
}
Tensor maximum(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("Maximum");
  set_site(site);
  return call1(op, a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("Minimum");
  set_site(site);
  return call1(op, a, b);
}
Tensor pow(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("Pow");
  set_site(site);
  return call1(op, a, b);
}
Tensor squared_difference(const Tensor& a, const Tensor& b, Site site) {
  static const OpDef& op = op_named("SquaredDifference");
  set_site(site);
  return call1(op, a, b);
}

namespace {
Tensor unary(const OpDef& op, const Tensor& x, Site site) {
  set_site(site);
  return call1(op, x);
}
}  // namespace

Tensor negative(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Neg");
  return unary(op, x, site);
}
Tensor abs(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Abs");
  static const OpDef& modulus = op_named("ComplexAbs");
  return unary(is_complex(x.dtype()) ? modulus : op, x, site);
}
Tensor sign(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Sign");
  return unary(op, x, site);
}
Tensor square(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Square");
  return unary(op, x, site);
}
Tensor sqrt(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Sqrt");
  return unary(op, x, site);
}
Tensor rsqrt(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Rsqrt");
  return unary(op, x, site);
}
Tensor exp(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Exp");
  return unary(op, x, site);
}
Tensor log(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Log");
  return unary(op, x, site);
}
Tensor log1p(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Log1p");
  return unary(op, x, site);
}
Tensor floor(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Floor");
  return unary(op, x, site);
}
Tensor sigmoid(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Sigmoid");
  return unary(op, x, site);
}
Tensor tanh(const Tensor& x, Site site) {
  static const OpDef& op = op_named("Tanh");
  return unary(op, x, site);
}

}  // namespace math

namespace {

// Operators have no line of their own.
Tensor binary(const OpDef& op, const Tensor& a, const Tensor& b) {
  set_site({});
  return call1(op, a, b);
}
const OpDef& add_op() {
  static const OpDef& op = op_named("AddV2");
  return op;
}
const OpDef& sub_op() {
  static const OpDef& op = op_named("Sub");
  return op;
}
const OpDef& mul_op() {
  static const OpDef& op = op_named("Mul");
  return op;
}
const OpDef& div_op() {
  static const OpDef& op = op_named("RealDiv");
  return op;
}

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) {
  return binary(add_op(), a, b);
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  return binary(sub_op(), a, b);
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  return binary(mul_op(), a, b);
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  return binary(div_op(), a, b);
}
Tensor operator+(const Tensor& a, double b) { return a + scalar_like(a, b); }
Tensor operator-(const Tensor& a, double b) { return a - scalar_like(a, b); }
Tensor operator*(const Tensor& a, double b) { return a * scalar_like(a, b); }
Tensor operator/(const Tensor& a, double b) { return a / scalar_like(a, b); }
Tensor operator+(double a, const Tensor& b) { return scalar_like(b, a) + b; }
Tensor operator-(double a, const Tensor& b) { return scalar_like(b, a) - b; }
Tensor operator*(double a, const Tensor& b) { return scalar_like(b, a) * b; }
Tensor operator/(double a, const Tensor& b) { return scalar_like(b, a) / b; }
Tensor operator-(const Tensor& x) { return math::negative(x, {}); }
Tensor& operator+=(Tensor& a, const Tensor& b) { return a = a + b; }
Tensor& operator-=(Tensor& a, const Tensor& b) { return a = a - b; }
Tensor& operator*=(Tensor& a, const Tensor& b) { return a = a * b; }
Tensor& operator/=(Tensor& a, const Tensor& b) { return a = a / b; }
Tensor& operator+=(Tensor& a, double b) { return a = a + b; }
Tensor& operator-=(Tensor& a, double b) { return a = a - b; }
Tensor& operator*=(Tensor& a, double b) { return a = a * b; }
Tensor& operator/=(Tensor& a, double b) { return a = a / b; }
Tensor operator%(const Tensor& a, const Tensor& b) {
  return math::floormod(a, b, {});
}
Tensor operator%(const Tensor& a, double b) { return a % scalar_like(a, b); }
Tensor operator%(double a, const Tensor& b) { return scalar_like(b, a) % b; }

namespace {

// Gradients go through the conjugate of the derivative (TensorFlow's
// convention); the same for what is not complex.
Tensor conj(const Tensor& x) { return math::conj(x, {}); }

Tensors grad_max_min(const GradCall& g, bool max) {
  // The first operand gets the gradient of ties, as in TensorFlow.
  const Tensor first = max ? math::greater_equal(g.x(0), g.x(1))
                           : math::less_equal(g.x(0), g.x(1));
  const Tensor mask = math::cast(first, g.x(0).dtype());
  const Tensor da = g.dy() * mask;
  return {sum_to(da, g.x(0)), sum_to(g.dy() - da, g.x(1))};
}

void register_binary(OpRegistry& r) {
  r.op("AddV2")
      .input("x", kEveryNumber)
      .input("y", kEveryNumber)
      .output("z")
      .elementwise()
      .commutative()
      .gradient([](const GradCall& g) {
        return Tensors{g.needs(0) ? sum_to(g.dy(), g.x(0)) : Tensor(),
                       g.needs(1) ? sum_to(g.dy(), g.x(1)) : Tensor()};
      });
  r.op("Sub")
      .input("x", kEveryNumber)
      .input("y", kEveryNumber)
      .output("z")
      .elementwise()
      .gradient([](const GradCall& g) {
        return Tensors{g.needs(0) ? sum_to(g.dy(), g.x(0)) : Tensor(),
                       g.needs(1) ? sum_to(-g.dy(), g.x(1)) : Tensor()};
      });
  r.op("Mul")
      .input("x", kEveryNumber)
      .input("y", kEveryNumber)
      .output("z")
      .elementwise()
      .commutative()
      .gradient([](const GradCall& g) {
        return Tensors{
            g.needs(0) ? sum_to(g.dy() * conj(g.x(1)), g.x(0)) : Tensor(),
            g.needs(1) ? sum_to(g.dy() * conj(g.x(0)), g.x(1)) : Tensor()};
      });
  r.op("RealDiv")
      .input("x", kInexactTypes)
      .input("y", kInexactTypes)
      .output("z")
      .elementwise()
      .gradient([](const GradCall& g) {
        const Tensor da = g.dy() / conj(g.x(1));
        return Tensors{
            g.needs(0) ? sum_to(da, g.x(0)) : Tensor(),
            g.needs(1) ? sum_to(-(da * conj(g.y())), g.x(1)) : Tensor()};
      });
  r.op("Maximum")
      .input("x", kRealNumbers)
      .input("y", kRealNumbers)
      .output("z")
      .elementwise()
      .commutative()
      .gradient([](const GradCall& g) { return grad_max_min(g, true); });
  r.op("Minimum")
      .input("x", kRealNumbers)
      .input("y", kRealNumbers)
      .output("z")
      .elementwise()
      .commutative()
      .gradient([](const GradCall& g) { return grad_max_min(g, false); });
  r.op("Pow")
      .input("x", kEveryNumber)
      .input("y", kEveryNumber)
      .output("z")
      .elementwise()
      .gradient([](const GradCall& g) {
        const Tensor &x = g.x(0), &y = g.x(1);
        Tensor dx, dy;
        if (g.needs(0))
          dx = sum_to(g.dy() * conj(y * math::pow(x, y - 1.0)), x);
        if (g.needs(1)) {
          // x^y log x, and 0 where x has no logarithm.
          const Tensor has = is_complex(x.dtype())
                                 ? math::not_equal(x, scalar_like(x, 0), {})
                                 : x > 0.0;
          const Tensor safe = where(has, x, scalar_like(x, 1), {});
          dy = sum_to(g.dy() * conj(g.y() * math::log(safe)), y);
        }
        return Tensors{dx, dy};
      });
  r.op("SquaredDifference")
      .input("x", kEveryNumber)
      .input("y", kEveryNumber)
      .output("z")
      .elementwise()
      .commutative()
      .gradient([](const GradCall& g) {
        // The square of the distance is real: so is what comes back of it.
        const DType t = g.dy().dtype();
        const Tensor dy = math::cast(math::real(g.dy(), {}), t, {});
        const Tensor d = dy * (g.x(0) - g.x(1)) * 2.0;
        return Tensors{g.needs(0) ? sum_to(d, g.x(0)) : Tensor(),
                       g.needs(1) ? sum_to(-d, g.x(1)) : Tensor()};
      });
}

}  // namespace

Tensor flow_through(const Tensor& dy, const Tensor& slope) {
  if (!is_complex(dy.dtype())) return math::multiply_no_nan(slope, dy, {});
  const Tensor zero = scalar_like(dy, 0);
  return where(math::equal(dy, zero, {}), zero, dy * slope, {});
}

Tensor over(const Tensor& dy, const Tensor& x) {
  return is_complex(x.dtype()) ? dy / conj(x) : dy * math::reciprocal(x, {});
}

namespace {

void unary_op(OpRegistry& r, const char* name, DTypeSet types,
              GradientFn gradient) {
  r.op(name).input("x", types).output("y").elementwise().gradient(gradient);
}

void register_unary(OpRegistry& r) {
  unary_op(r, "Neg", kEveryNumber,
           [](const GradCall& g) { return Tensors{-g.dy()}; });
  unary_op(r, "Abs", kRealNumbers, [](const GradCall& g) {
    return Tensors{g.dy() * math::sign(g.x(0), {})};
  });
  unary_op(r, "Square", kEveryNumber, [](const GradCall& g) {
    return Tensors{g.dy() * conj(g.x(0) * 2.0)};
  });
  unary_op(r, "Sqrt", kInexactTypes, [](const GradCall& g) {
    return Tensors{flow_through(g.dy(), 0.5 / conj(g.y()))};
  });
  unary_op(r, "Rsqrt", kInexactTypes, [](const GradCall& g) {
    return Tensors{flow_through(g.dy(), conj(g.y() * g.y() * g.y()) * -0.5)};
  });
  unary_op(r, "Exp", kInexactTypes,
           [](const GradCall& g) { return Tensors{g.dy() * conj(g.y())}; });
  unary_op(r, "Log", kInexactTypes,
           [](const GradCall& g) { return Tensors{over(g.dy(), g.x(0))}; });
  unary_op(r, "Log1p", kInexactTypes, [](const GradCall& g) {
    return Tensors{over(g.dy(), g.x(0) + 1.0)};
  });
  unary_op(r, "Sigmoid", kInexactTypes, [](const GradCall& g) {
    return Tensors{g.dy() * conj(g.y() * (1.0 - g.y()))};
  });
  unary_op(r, "Tanh", kInexactTypes, [](const GradCall& g) {
    return Tensors{g.dy() * conj(1.0 - g.y() * g.y())};
  });
  for (const char* flat : {"Sign", "Floor"}) {
    r.op(flat)
        .input("x", flat[0] == 'S' ? kRealNumbers : kRealFloats)
        .output("y")
        .elementwise()
        .gradient([](const GradCall& g) {
          static const OpDef& zeros = op_named("ZerosLike");
          return Tensors{call1(zeros, g.x(0))};
        });
  }
}

}  // namespace

void register_elementwise_ops(OpRegistry& r) {
  register_binary(r);
  register_unary(r);
}

}  // namespace berth
