// Comparisons, logic, casts.

#include <fmt/format.h>

#include "berth/ops/math.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

void comparison(OpRegistry& r, const char* name, DTypeSet types,
                bool commutative) {
  OpBuilder op = r.op(name);
  op.input("x", types)
      .input("y", types)
      .output("z")
      .infer(&infer_compare)
      .elementwise()
      .not_differentiable();
  if (commutative) op.commutative();
}

}  // namespace

namespace math {

Tensor equal(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Equal">(a, b, site);
}
Tensor not_equal(const Tensor& a, const Tensor& b, Site site) {
  return binary<"NotEqual">(a, b, site);
}
Tensor less(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Less">(a, b, site);
}
Tensor less_equal(const Tensor& a, const Tensor& b, Site site) {
  return binary<"LessEqual">(a, b, site);
}
Tensor greater(const Tensor& a, const Tensor& b, Site site) {
  return binary<"Greater">(a, b, site);
}
Tensor greater_equal(const Tensor& a, const Tensor& b, Site site) {
  return binary<"GreaterEqual">(a, b, site);
}
Tensor logical_and(const Tensor& a, const Tensor& b, Site site) {
  return binary<"LogicalAnd">(a, b, site);
}
Tensor logical_or(const Tensor& a, const Tensor& b, Site site) {
  return binary<"LogicalOr">(a, b, site);
}
Tensor logical_not(const Tensor& x, Site site) {
  return unary<"LogicalNot">(x, site);
}

Tensor cast(const Tensor& x, DType dtype, Site site) {
  if (x.dtype() == dtype) return x;
  set_site(site);
  return call1(op_of<"Cast">(), x, AttrsRef({{"DstT", dtype}}).get());
}

}  // namespace math

Tensor operator<(const Tensor& a, const Tensor& b) {
  return math::less(a, b, {});
}
Tensor operator<=(const Tensor& a, const Tensor& b) {
  return math::less_equal(a, b, {});
}
Tensor operator>(const Tensor& a, const Tensor& b) {
  return math::greater(a, b, {});
}
Tensor operator>=(const Tensor& a, const Tensor& b) {
  return math::greater_equal(a, b, {});
}
Tensor operator<(const Tensor& a, double b) { return a < scalar_like(a, b); }
Tensor operator<(double a, const Tensor& b) { return scalar_like(b, a) < b; }
Tensor operator<=(const Tensor& a, double b) { return a <= scalar_like(a, b); }
Tensor operator<=(double a, const Tensor& b) { return scalar_like(b, a) <= b; }
Tensor operator>(const Tensor& a, double b) { return a > scalar_like(a, b); }
Tensor operator>(double a, const Tensor& b) { return scalar_like(b, a) > b; }
Tensor operator>=(const Tensor& a, double b) { return a >= scalar_like(a, b); }
Tensor operator>=(double a, const Tensor& b) { return scalar_like(b, a) >= b; }
Tensor operator==(const Tensor& a, const Tensor& b) {
  return math::equal(a, b, {});
}
Tensor operator==(const Tensor& a, double b) { return a == scalar_like(a, b); }
Tensor operator==(double a, const Tensor& b) { return scalar_like(b, a) == b; }
Tensor operator!=(const Tensor& a, const Tensor& b) {
  return math::not_equal(a, b, {});
}
Tensor operator!=(const Tensor& a, double b) { return a != scalar_like(a, b); }
Tensor operator!=(double a, const Tensor& b) { return scalar_like(b, a) != b; }

void register_compare_ops(OpRegistry& r) {
  comparison(r, "Equal", kEveryType | kStringType, true);
  comparison(r, "NotEqual", kEveryType | kStringType, true);
  comparison(r, "Less", kRealNumbers, false);
  comparison(r, "LessEqual", kRealNumbers, false);
  comparison(r, "Greater", kRealNumbers, false);
  comparison(r, "GreaterEqual", kRealNumbers, false);
  comparison(r, "LogicalAnd", kBoolType, true);
  comparison(r, "LogicalOr", kBoolType, true);
  r.op("LogicalNot")
      .input("x", kBoolType)
      .output("y")
      .elementwise()
      .not_differentiable();
  r.op("Cast")
      .input("x", kEveryType)
      .output("y")
      .required_attr("DstT", float32)
      .infer([](InferContext& c) {
        const DType to = c.attr<DType>("DstT");
        if (!(kEveryType & dtype_bit(to))) {
          c.fail(fmt::format("to {}; expected a dtype that holds numbers",
                             name_of(to)));
        }
        c.set_output(0, to, c.shape(0));
      })
      .elementwise()
      .gradient([](const GradCall& g) {
        const DType d = g.x(0).dtype();
        // Through whole numbers nothing flows (TensorFlow: None). Back from
        // a complex number comes its real part.
        if (!is_inexact(d) || !is_inexact(g.y().dtype())) return Tensors{{}};
        return Tensors{math::cast(g.dy(), d, {})};
      });
}

}  // namespace berth
