// Elementwise arithmetic and functions.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/families.h"
#include "ops/flow_through.h"
#include "ops/named_call.h"

namespace berth {

namespace math {

Tensor add(const Tensor& a, const Tensor& b, Site site) {
  return binary<"AddV2">(a, b, site);
}
Tensor subtract(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Sub">(a, b, site);
}
Tensor multiply(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Mul">(a, b, site);
}
Tensor divide(const Tensor& a, const Tensor& b, Site site) {
  return binary<"RealDiv">(a, b, site);
}
Tensor maximum(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Maximum">(a, b, site);
}
Tensor minimum(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Minimum">(a, b, site);
}
Tensor pow(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Pow">(a, b, site);
}
Tensor squared_difference(const Tensor& a, const Tensor& b, Site site) {
  return binary<"SquaredDifference">(a, b, site);
}

Tensor negative(const Tensor& x, Site s) { return unary<"Neg">(x, s); }
Tensor abs(const Tensor& x, Site site) {
  return is_complex(x.dtype()) ? unary<"ComplexAbs">(x, site)
                               : unary<"Abs">(x, site);
}
Tensor sign(const Tensor& x, Site s) { return unary<"Sign">(x, s); }
Tensor square(const Tensor& x, Site s) { return unary<"Square">(x, s); }
Tensor sqrt(const Tensor& x, Site s) { return unary<"Sqrt">(x, s); }
Tensor rsqrt(const Tensor& x, Site s) { return unary<"Rsqrt">(x, s); }
Tensor exp(const Tensor& x, Site s) { return unary<"Exp">(x, s); }
Tensor log(const Tensor& x, Site s) { return unary<"Log">(x, s); }
Tensor log1p(const Tensor& x, Site s) { return unary<"Log1p">(x, s); }
Tensor floor(const Tensor& x, Site s) { return unary<"Floor">(x, s); }
Tensor sigmoid(const Tensor& x, Site s) { return unary<"Sigmoid">(x, s); }
Tensor tanh(const Tensor& x, Site s) { return unary<"Tanh">(x, s); }

}  // namespace math

// Operators have no line of their own.
Tensor operator+(const Tensor& a, const Tensor& b) {
  return binary<"AddV2">(a, b);
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  return binary<"Sub">(a, b);
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  return binary<"Mul">(a, b);
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  return binary<"RealDiv">(a, b);
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

void binary_op(OpRegistry& r, const char* name, DTypeSet types,
               bool commutative, GradientFn gradient) {
  OpBuilder op = r.op(name);
  op.input("x", types).input("y", types).output("z").elementwise();
  if (commutative) op.commutative();
  op.gradient(gradient);
}

void register_binary(OpRegistry& r) {
  binary_op(r, "AddV2", kEveryNumber, true, [](const GradCall& g) {
    return Tensors{g.needs(0) ? sum_to(g.dy(), g.x(0)) : Tensor(),
                   g.needs(1) ? sum_to(g.dy(), g.x(1)) : Tensor()};
  });
  binary_op(r, "Sub", kEveryNumber, false, [](const GradCall& g) {
    return Tensors{g.needs(0) ? sum_to(g.dy(), g.x(0)) : Tensor(),
                   g.needs(1) ? sum_to(-g.dy(), g.x(1)) : Tensor()};
  });
  binary_op(r, "Mul", kEveryNumber, true, [](const GradCall& g) {
    return Tensors{
        g.needs(0) ? sum_to(g.dy() * conj(g.x(1)), g.x(0)) : Tensor(),
        g.needs(1) ? sum_to(g.dy() * conj(g.x(0)), g.x(1)) : Tensor()};
  });
  binary_op(r, "RealDiv", kInexactTypes, false, [](const GradCall& g) {
    const Tensor da = g.dy() / conj(g.x(1));
    return Tensors{g.needs(0) ? sum_to(da, g.x(0)) : Tensor(),
                   g.needs(1) ? sum_to(-(da * conj(g.y())), g.x(1)) : Tensor()};
  });
  binary_op(r, "Maximum", kRealNumbers, true,
            [](const GradCall& g) { return grad_max_min(g, true); });
  binary_op(r, "Minimum", kRealNumbers, true,
            [](const GradCall& g) { return grad_max_min(g, false); });
  binary_op(r, "Pow", kEveryNumber, false, [](const GradCall& g) {
    const Tensor &x = g.x(0), &y = g.x(1);
    Tensor dx, dy;
    if (g.needs(0)) dx = sum_to(g.dy() * conj(y * math::pow(x, y - 1.0)), x);
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
  binary_op(r, "SquaredDifference", kEveryNumber, true, [](const GradCall& g) {
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
          return Tensors{call1(op_of<"ZerosLike">(), g.x(0))};
        });
  }
}

}  // namespace

void register_elementwise_ops(OpRegistry& r) {
  register_binary(r);
  register_unary(r);
}

}  // namespace berth
