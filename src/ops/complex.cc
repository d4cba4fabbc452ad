// Complex numbers: made from parts, and their parts.

#include <numbers>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace math {

Tensor complex(const Tensor& re, const Tensor& im, Site site) {
  return call_checked(op_of<"Complex">(), site, {&re, &im});
}
Tensor real(const Tensor& x, Site site) {
  return is_complex(x.dtype()) ? call_checked(op_of<"Real">(), site, {&x}) : x;
}
Tensor imag(const Tensor& x, Site site) {
  return is_complex(x.dtype()) ? call_checked(op_of<"Imag">(), site, {&x})
                               : zeros_like(x, site);
}
Tensor angle(const Tensor& x, Site site) {
  if (is_complex(x.dtype())) return call_checked(op_of<"Angle">(), site, {&x});
  return where(less(x, scalar_like(x, 0), site),
               scalar_like(x, std::numbers::pi), scalar_like(x, 0), site);
}
Tensor conj(const Tensor& x, Site site) {
  return is_complex(x.dtype()) ? call_checked(op_of<"Conj">(), site, {&x}) : x;
}

}  // namespace math

namespace {

// The dtype of the parts of a complex number, and of the number of its parts.
DType part_of(DType dtype) { return dtype == complex64 ? float32 : float64; }
DType whole_of(DType dtype) {
  return dtype == float32 ? complex64 : complex128;
}

void infer_complex(InferContext& c) {
  c.set_output(0, whole_of(c.dtype(0)),
               broadcast_shapes(c, c.shape(0), c.shape(1)));
}
void infer_part(InferContext& c) {
  c.set_output(0, part_of(c.dtype(0)), c.shape(0));
}

Tensor zero_like(const Tensor& x) { return scalar_like(x, 0); }

// |z| is z / |z| steep in the direction of z; 0 at 0.
Tensors grad_modulus(const GradCall& g) {
  const DType real = g.y().dtype(), whole = g.x(0).dtype();
  const Tensor at_zero =
      math::cast(math::equal(g.y(), zero_like(g.y()), {}), real, {});
  const Tensor slope = g.dy() / (g.y() + at_zero);
  return {math::cast(slope, whole, {}) * g.x(0)};
}

// d angle = (re d im - im d re) / |z|^2.
Tensors grad_angle(const GradCall& g) {
  const Tensor re = math::real(g.x(0), {}), im = math::imag(g.x(0), {});
  const Tensor slope = g.dy() / (re * re + im * im);
  return {math::complex(-(slope * im), slope * re, {})};
}

void part_op(OpRegistry& r, const char* name, GradientFn gradient,
             const char* doc) {
  r.op(name)
      .input("input", kComplexTypes)
      .output("output")
      .infer(&infer_part)
      .elementwise()
      .gradient(gradient)
      .doc(doc);
}

}  // namespace

void register_complex_ops(OpRegistry& r) {
  r.op("Complex")
      .input("real", kFloatingTypes)
      .input("imag", kFloatingTypes)
      .output("out")
      .infer(&infer_complex)
      .elementwise()
      .gradient([](const GradCall& g) {
        Tensor re, im;
        if (g.needs(0)) re = sum_to(math::real(g.dy(), {}), g.x(0));
        if (g.needs(1)) im = sum_to(math::imag(g.dy(), {}), g.x(1));
        return Tensors{re, im};
      })
      .doc("real + i imag.");
  part_op(
      r, "Real",
      [](const GradCall& g) {
        return Tensors{math::complex(g.dy(), zero_like(g.dy()), {})};
      },
      "The real part.");
  part_op(
      r, "Imag",
      [](const GradCall& g) {
        return Tensors{math::complex(zero_like(g.dy()), g.dy(), {})};
      },
      "The imaginary part.");
  part_op(r, "Angle", &grad_angle, "The argument, in (-pi, pi].");
  part_op(r, "ComplexAbs", &grad_modulus, "The modulus.");
  r.op("Conj")
      .input("input", kComplexTypes)
      .output("output")
      .elementwise()
      .gradient(
          [](const GradCall& g) { return Tensors{math::conj(g.dy(), {})}; })
      .doc("The conjugate.");
}

}  // namespace berth
