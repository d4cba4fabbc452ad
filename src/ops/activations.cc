// Activations that differ below 0.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace nn {

Tensor elu(const Tensor& x, Site s) { return unary<"Elu">(x, s); }
Tensor selu(const Tensor& x, Site s) { return unary<"Selu">(x, s); }
Tensor relu6(const Tensor& x, Site s) { return unary<"Relu6">(x, s); }
Tensor leaky_relu(const Tensor& x, double alpha, Site s) {
  return unary<"LeakyRelu">(x, s, AttrsRef({{"alpha", alpha}}).get());
}
Tensor silu(const Tensor& x, Site s) { return x * math::sigmoid(x, s); }
Tensor swish(const Tensor& x, Site s) { return silu(x, s); }
Tensor hard_sigmoid(const Tensor& x, Site s) {
  return relu6(x + 3.0, s) * (1.0 / 6);
}
Tensor hard_swish(const Tensor& x, Site s) { return x * hard_sigmoid(x, s); }
Tensor mish(const Tensor& x, Site s) {
  return x * math::tanh(math::softplus(x, s), s);
}

}  // namespace nn

namespace {

// dy * slope where `below`, else dy * above: no 0 * inf from the other side.
Tensors piecewise(const GradCall& g, const Tensor& below, const Tensor& slope,
                  double above) {
  const Tensor dy = g.dy();
  return {where(below, dy * slope, above == 1 ? dy : dy * above, {})};
}

// Elu and Selu: scale * (x < 0 ? alpha (exp(x) - 1) : x), whose slope below 0
// is y + scale * alpha.
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

Tensors grad_elu(const GradCall& g) {
  return piecewise(g, g.y() < 0.0, g.y() + 1.0, 1);
}
Tensors grad_selu(const GradCall& g) {
  return piecewise(g, g.y() < 0.0, g.y() + kSeluScale * kSeluAlpha, kSeluScale);
}
Tensors grad_leaky_relu(const GradCall& g) {
  const Tensor dy = g.dy();
  return {where(g.x(0) > 0.0, dy, dy * g.attr<double>("alpha"), {})};
}
// Nothing at 0 and at 6.
Tensors grad_relu6(const GradCall& g) {
  const Tensor& y = g.y();
  const Tensor inside = math::logical_and(y > 0.0, y < 6.0, {});
  return {where(inside, g.dy(), scalar_like(g.dy(), 0), {})};
}

void activation(OpRegistry& r, const char* name, GradientFn gradient,
                const char* doc) {
  r.op(name)
      .input("features", kRealFloats)
      .output("activations")
      .elementwise()
      .gradient(gradient)
      .doc(doc);
}

}  // namespace

void register_activation_ops(OpRegistry& r) {
  activation(r, "Elu", &grad_elu, "x < 0 ? exp(x) - 1 : x.");
  activation(r, "Selu", &grad_selu,
             "1.0507 (x < 0 ? 1.67326 (exp(x) - 1) : x).");
  activation(r, "Relu6", &grad_relu6, "min(max(x, 0), 6).");
  r.op("LeakyRelu")
      .input("features", kRealFloats)
      .output("activations")
      .attr("alpha", 0.2)
      .elementwise()
      .gradient(&grad_leaky_relu)
      .doc("x > 0 ? x : alpha x.");
}

}  // namespace berth
