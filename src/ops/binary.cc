// Elementwise functions of two operands beyond those of elementwise.cc: one
// table; and sums of many.

#include "berth/ops/array.h"
#include "berth/ops/bitwise.h"
#include "berth/ops/math.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace math {

Tensor atan2(const Tensor& y, const Tensor& x, Site s) {
  return binary<"Atan2">(y, x, s);
}
Tensor polygamma(const Tensor& a, const Tensor& x, Site s) {
  return binary<"Polygamma">(a, x, s);
}
Tensor zeta(const Tensor& x, const Tensor& q, Site s) {
  return binary<"Zeta">(x, q, s);
}
Tensor floordiv(const Tensor& a, const Tensor& b, Site s) {
  return binary<"FloorDiv">(a, b, s);
}
Tensor floormod(const Tensor& a, const Tensor& b, Site s) {
  return binary<"FloorMod">(a, b, s);
}
Tensor mod(const Tensor& a, const Tensor& b, Site s) {
  return floormod(a, b, s);
}
Tensor truncatediv(const Tensor& a, const Tensor& b, Site s) {
  return binary<"TruncateDiv">(a, b, s);
}
Tensor truncatemod(const Tensor& a, const Tensor& b, Site s) {
  return binary<"TruncateMod">(a, b, s);
}
Tensor divide_no_nan(const Tensor& a, const Tensor& b, Site s) {
  return binary<"DivNoNan">(a, b, s);
}
Tensor multiply_no_nan(const Tensor& a, const Tensor& b, Site s) {
  return binary<"MulNoNan">(a, b, s);
}
Tensor xlogy(const Tensor& x, const Tensor& y, Site s) {
  return binary<"Xlogy">(x, y, s);
}
Tensor xlog1py(const Tensor& x, const Tensor& y, Site s) {
  return binary<"Xlog1py">(x, y, s);
}
Tensor xdivy(const Tensor& x, const Tensor& y, Site s) {
  return binary<"Xdivy">(x, y, s);
}
Tensor nextafter(const Tensor& a, const Tensor& b, Site s) {
  return binary<"NextAfter">(a, b, s);
}

Tensor logical_xor(const Tensor& a, const Tensor& b, Site s) {
  // For bool alone, as the other logical functions.
  return logical_and(logical_or(a, b, s), logical_not(logical_and(a, b, s), s),
                     s);
}

Tensor add_n(const Tensors& parts, Site s) {
  set_site(s);
  return call_list(op_of<"AddN">(), parts)[0];
}
Tensor accumulate_n(const Tensors& parts, Site s) { return add_n(parts, s); }
Tensor scalar_mul(double scalar, const Tensor& x, Site s) {
  return multiply(scalar_like(x, scalar), x, s);
}

}  // namespace math

namespace bitwise {

Tensor bitwise_and(const Tensor& a, const Tensor& b, Site s) {
  return binary<"BitwiseAnd">(a, b, s);
}
Tensor bitwise_or(const Tensor& a, const Tensor& b, Site s) {
  return binary<"BitwiseOr">(a, b, s);
}
Tensor bitwise_xor(const Tensor& a, const Tensor& b, Site s) {
  return binary<"BitwiseXor">(a, b, s);
}
Tensor left_shift(const Tensor& a, const Tensor& b, Site s) {
  return binary<"LeftShift">(a, b, s);
}
Tensor right_shift(const Tensor& a, const Tensor& b, Site s) {
  return binary<"RightShift">(a, b, s);
}

}  // namespace bitwise

Tensor operator&(const Tensor& a, const Tensor& b) {
  return a.dtype() == bool_ ? math::logical_and(a, b, {})
                            : bitwise::bitwise_and(a, b, {});
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  return a.dtype() == bool_ ? math::logical_or(a, b, {})
                            : bitwise::bitwise_or(a, b, {});
}
Tensor operator^(const Tensor& a, const Tensor& b) {
  return a.dtype() == bool_ ? math::logical_xor(a, b, {})
                            : bitwise::bitwise_xor(a, b, {});
}
Tensor operator~(const Tensor& x) {
  return x.dtype() == bool_ ? math::logical_not(x, {}) : bitwise::invert(x, {});
}
Tensor operator!(const Tensor& x) { return math::logical_not(x, {}); }

namespace {

// The derivatives in a and b of a function of two, times dy.
Tensors pair(const GradCall& g, Tensor (*da)(const GradCall&),
             Tensor (*db)(const GradCall&)) {
  return {g.needs(0) ? sum_to(da(g), g.x(0)) : Tensor(),
          g.needs(1) ? sum_to(db(g), g.x(1)) : Tensor()};
}

// 1 where x is not 0, else 0.
Tensor not_zero(const Tensor& x) {
  return math::cast(math::not_equal(x, scalar_like(x, 0), {}), x.dtype(), {});
}

Tensors grad_atan2(const GradCall& g) {
  return pair(
      g,
      [](const GradCall& g) {
        return g.dy() * g.x(1) / (g.x(0) * g.x(0) + g.x(1) * g.x(1));
      },
      [](const GradCall& g) {
        return -g.dy() * g.x(0) / (g.x(0) * g.x(0) + g.x(1) * g.x(1));
      });
}

// In the order nothing flows, as in TensorFlow.
Tensors grad_polygamma(const GradCall& g) {
  if (!g.needs(1)) return {{}, {}};
  const Tensor d = math::polygamma(g.x(0) + 1.0, g.x(1), {});
  return {{}, sum_to(g.dy() * d, g.x(1))};
}
Tensors grad_zeta(const GradCall& g) {
  if (!g.needs(1)) return {{}, {}};
  const Tensor d = -g.x(0) * math::zeta(g.x(0) + 1.0, g.x(1), {});
  return {{}, sum_to(g.dy() * d, g.x(1))};
}

Tensors no_slopes(const GradCall& g) {
  return pair(
      g, [](const GradCall& g) { return zeros_like(g.dy(), {}); },
      [](const GradCall& g) { return zeros_like(g.dy(), {}); });
}

// a - b * floor(a / b).
Tensors grad_floormod(const GradCall& g) {
  return pair(
      g, [](const GradCall& g) { return g.dy(); },
      [](const GradCall& g) {
        return -g.dy() * math::floordiv(g.x(0), g.x(1), {});
      });
}

// a - b * q, with the whole number q.
Tensors grad_truncatemod(const GradCall& g) {
  return pair(
      g, [](const GradCall& g) { return g.dy(); },
      [](const GradCall& g) {
        if (is_integer(g.x(0).dtype())) {
          return -g.dy() * math::truncatediv(g.x(0), g.x(1), {});
        }
        return -g.dy() * math::round((g.x(0) - g.y()) / g.x(1), {});
      });
}

Tensors grad_div_no_nan(const GradCall& g) {
  return pair(
      g,
      [](const GradCall& g) { return math::divide_no_nan(g.dy(), g.x(1), {}); },
      [](const GradCall& g) {
        return -g.dy() * math::divide_no_nan(g.y(), g.x(1), {});
      });
}

Tensors grad_mul_no_nan(const GradCall& g) {
  return pair(
      g,
      [](const GradCall& g) {
        return math::multiply_no_nan(g.dy(), g.x(1), {});
      },
      [](const GradCall& g) {
        return math::multiply_no_nan(g.x(0), g.dy(), {});
      });
}

Tensors grad_xlogy(const GradCall& g) {
  return pair(
      g,
      [](const GradCall& g) {
        return g.dy() * math::xlogy(not_zero(g.x(0)), g.x(1), {});
      },
      [](const GradCall& g) {
        return g.dy() * math::xdivy(g.x(0), g.x(1), {});
      });
}

Tensors grad_xlog1py(const GradCall& g) {
  return pair(
      g,
      [](const GradCall& g) {
        return g.dy() * math::xlog1py(not_zero(g.x(0)), g.x(1), {});
      },
      [](const GradCall& g) {
        return g.dy() * math::xdivy(g.x(0), g.x(1) + 1.0, {});
      });
}

Tensors grad_xdivy(const GradCall& g) {
  return pair(
      g,
      [](const GradCall& g) {
        return g.dy() * math::xdivy(not_zero(g.x(0)), g.x(1), {});
      },
      [](const GradCall& g) {
        return -g.dy() * math::xdivy(g.x(0), math::square(g.x(1), {}), {});
      });
}

Tensors grad_nextafter(const GradCall& g) {
  return pair(
      g, [](const GradCall& g) { return g.dy(); },
      [](const GradCall& g) { return zeros_like(g.dy(), {}); });
}

struct Function {
  const char* name;
  DTypeSet types;
  GradientFn gradient;  // null: not differentiable
  const char* doc;
  bool commutative = false;
};

constexpr Function kFunctions[] = {
    {"Atan2", kRealFloats, &grad_atan2, "Angle of the point (y, x)."},
    {"Polygamma", kRealFloats, &grad_polygamma,
     "Derivative of order x of digamma at y; NaN unless x is 0, 1, ..."},
    {"Zeta", kRealFloats, &grad_zeta,
     "Sum of (y + k)^-x over k = 0, 1, ...; inf for x = 1, NaN below."},
    {"FloorDiv", kRealNumbers, &no_slopes,
     "Quotient rounded down; integers by 0 are an error."},
    {"FloorMod", kRealNumbers, &grad_floormod,
     "x - y * FloorDiv(x, y), with the sign of y."},
    {"TruncateDiv", kEveryInteger, nullptr,
     "Quotient rounded towards 0; by 0 an error."},
    {"TruncateMod", kRealNumbers, &grad_truncatemod,
     "What truncating division leaves, with the sign of x."},
    {"DivNoNan", kRealFloats, &grad_div_no_nan, "x / y, 0 where y is 0."},
    {"MulNoNan", kRealFloats, &grad_mul_no_nan, "x * y, 0 where y is 0."},
    {"Xlogy", kRealFloats, &grad_xlogy, "x log(y), 0 where x is 0."},
    {"Xlog1py", kRealFloats, &grad_xlog1py, "x log(1 + y), 0 where x is 0."},
    {"Xdivy", kRealFloats, &grad_xdivy, "x / y, 0 where x is 0."},
    {"NextAfter", kFloatingTypes, &grad_nextafter,
     "The next number after x towards y."},
    {"BitwiseAnd", kEveryInteger, nullptr, "Bits set in both.", true},
    {"BitwiseOr", kEveryInteger, nullptr, "Bits set in either.", true},
    {"BitwiseXor", kEveryInteger, nullptr, "Bits set in one alone.", true},
    {"LeftShift", kEveryInteger, nullptr,
     "x << y, y kept within 0 and the width - 1."},
    {"RightShift", kEveryInteger, nullptr,
     "x >> y, y kept within 0 and the width - 1; keeps the sign."},
};

}  // namespace

void register_binary_ops(OpRegistry& r) {
  for (const Function& f : kFunctions) {
    OpBuilder op = r.op(f.name);
    op.input("x", f.types).input("y", f.types).output("z").elementwise();
    op.doc(f.doc);
    if (f.commutative) op.commutative();
    f.gradient ? op.gradient(f.gradient) : op.not_differentiable();
  }
  r.op("AddN")
      .variadic_input("inputs", kEveryNumber)
      .output("sum")
      .infer([](InferContext& c) {
        Shape shape = c.shape(0);
        for (int i = 1; i < c.num_inputs(); ++i) {
          if (!shape.compatible_with(c.shape(i))) {
            c.fail("inputs are " + shape.str() + " and " + c.shape(i).str() +
                   "; expected equal shapes");
          }
          for (int d = 0; d < shape.rank(); ++d) {
            if (shape[d] < 0) shape[d] = c.shape(i)[d];
          }
        }
        c.set_output(0, c.dtype(0), shape);
      })
      .elementwise()
      .gradient([](const GradCall& g) {
        return Tensors(static_cast<size_t>(g.num_inputs()), g.dy());
      })
      .doc("Sum of tensors of one shape.");
}

}  // namespace berth
