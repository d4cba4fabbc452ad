// Activations, bias and dropout.

#include "berth/ops/nn.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

#include "base/immortal.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/random_key.h"
#include "ops/widened.h"

namespace berth {

namespace {

Tensors grad_relu(const GradCall& g) {
  // y > 0 exactly where x > 0, and y is often kept anyway.
  return {call1(op_of<"ReluGrad">(), g.dy(), g.y())};
}

Tensors grad_relu_grad(const GradCall& g) {
  return {g.needs(0) ? call1(g.op(), g.dy(), g.x(1)) : Tensor(),
          g.needs(1) ? zeros_like(g.x(1), {}) : Tensor()};
}

Tensors grad_gelu(const GradCall& g) {
  return {call1(op_of<"GeluGrad">(), g.dy(), g.x(0), g.attrs())};
}

// The second derivative of gelu.
Tensor gelu_curvature(const Tensor& x, bool approximate) {
  const Tensor x2 = x * x;
  if (!approximate) {
    const double scale = 1 / std::sqrt(2 * std::numbers::pi);
    return (2.0 - x2) * math::exp(x2 * -0.5, {}) * scale;
  }
  const double k = std::sqrt(2 / std::numbers::pi), a = 0.044715;
  const Tensor t = math::tanh(x * (x2 * a + 1.0) * k, {});
  const Tensor slope = (x2 * (3 * a) + 1.0) * k;  // of tanh's argument
  const Tensor s = 1.0 - t * t;
  return s * (slope + 0.5 * x * (x * (6 * a * k) - 2.0 * t * slope * slope));
}

Tensors grad_gelu_grad(const GradCall& g) {
  Tensors d(2);
  if (g.needs(0)) d[0] = call1(g.op(), g.dy(), g.x(1), g.attrs());
  if (g.needs(1)) {
    const Tensor curvature =
        gelu_curvature(widened(g.x(1)), g.attr<bool>("approximate"));
    d[1] = g.dy() * g.x(0) * rounded_like(curvature, g.x(1));
  }
  return d;
}

void infer_bias_add(InferContext& c) {
  const Shape &value = c.shape(0), &bias = c.shape(1);
  c.expect_rank(1, 1, "[c]");
  if (value.rank() < 1) {
    c.fail("value is a scalar; expected [..., c]");
  }
  Shape out = value;
  int64_t& last = out[out.rank() - 1];
  last = c.merge_dims(
      last, bias[0],
      fmt::format("value is {}, bias is {}; expected bias.shape[0] == {}",
                  value.str(), bias.str(), last));
  c.set_output(0, c.dtype(0), out);
}

Tensors grad_bias_add(const GradCall& g) {
  return {g.dy(),
          g.needs(1) ? call1(op_of<"BiasAddGrad">(), g.dy()) : Tensor()};
}

void infer_bias_add_grad(InferContext& c) {
  const Shape& dy = c.shape(0);
  if (dy.rank() < 1) c.fail("out_backprop is a scalar; expected [..., c]");
  c.set_output(0, c.dtype(0), Shape{dy[dy.rank() - 1]});
}

std::vector<SplitSignature> split_bias_add_grad(const InferContext& c) {
  std::vector<SplitSignature> rules;
  const int last = c.shape(0).rank() - 1;
  for (int i = 0; i < last; ++i) {
    rules.push_back({{static_cast<int8_t>(i)}, {SplitSignature::kPartialSum}});
  }
  rules.push_back({{static_cast<int8_t>(last)}, {0}});
  return rules;
}

void check_rate(const InferContext& c) {
  const double rate = c.attr<double>("rate");
  if (!(rate >= 0 && rate < 1)) {
    c.fail(fmt::format("rate is {}; expected 0 <= rate < 1", rate));
  }
}

AttrsRef rate_of(const GradCall& g) {
  return AttrsRef({{"rate", g.attr<double>("rate")}});
}

Tensors grad_dropout(const GradCall& g) {
  return {call1(op_of<"DropoutGrad">(), g.dy(), g.y(1), rate_of(g).get())};
}

// Ones of the shape in which dropout draws.
Tensor noise_ones(const Tensor& x, const std::vector<int64_t>& noise) {
  const Shape& shape = x.shape();
  Shape drawn = shape;
  std::vector<int64_t> shared;
  bool good = static_cast<int>(noise.size()) == shape.rank();
  for (int i = 0; good && i < shape.rank(); ++i) {
    good =
        noise[i] == 1 || noise[i] < 0 || shape[i] < 0 || noise[i] == shape[i];
    if (noise[i] != 1) continue;
    drawn[i] = 1;
    shared.push_back(i);
  }
  if (!good) {
    throw errors::InvalidArgument(fmt::format(
        "dropout: noise_shape is [{}], x is {}{}; expected 1, -1 or x's "
        "length for each axis",
        fmt::join(noise, ", "), shape.str(), where_text()));
  }
  if (drawn.is_fully_defined()) return ones(drawn, x.dtype(), {});
  // Only the shape of the maximum is read.
  return ones_like(math::reduce_max(x, {.axis = shared, .keepdims = true}, {}),
                   {});
}

// Only a cut of the first axis leaves the elements of a part in one run.
std::vector<SplitSignature> split_dropout(const InferContext& c) {
  if (c.shape(0).rank() == 0) return {};
  return {{{0}, {0, 0}}};
}

}  // namespace

namespace nn {

Tensor relu(const Tensor& x, Site s) { return unary<"Relu">(x, s); }

Tensor gelu(const Tensor& x, const GeluOptions& options, Site site) {
  static const auto& kApproximate =
      immortal<AttrsRef>(std::vector<Attrs::Pair>{{"approximate", true}});
  set_site(site);
  return call1(op_of<"Gelu">(), x,
               options.approximate ? kApproximate.get() : nullptr);
}

Tensor bias_add(const Tensor& value, const Tensor& bias, Site site) {
  return binary<"BiasAdd">(value, bias, site);
}

Tensor dropout(const Tensor& x, double rate, const DropoutOptions& options,
               Site site) {
  set_site(site);
  if (!options.noise_shape.empty()) {
    const Tensor noise = noise_ones(x, options.noise_shape);
    return x * dropout(noise, rate, {.seed = options.seed}, site);
  }
  const RandomKey key = next_random_key(options.seed);
  const AttrsRef attrs(
      {{"rate", rate}, {"seed", key.seed}, {"op_id", key.op_id}});
  return call_many(op_of<"Dropout">(), {&x}, attrs.get())[0];
}

Tensor l2_loss(const Tensor& x, Site site) {
  return math::reduce_sum(x * x, {}, site) * 0.5;
}

}  // namespace nn

namespace {

void register_activations(OpRegistry& r) {
  r.op("Relu")
      .input("features", kRealNumbers)
      .output("activations")
      .elementwise()
      .gradient(&grad_relu)
      .doc("max(x, 0); NaN stays NaN.");
  r.op("ReluGrad")
      .input("gradients", kRealNumbers)
      .input("features", kRealNumbers)
      .output("backprops")
      .elementwise()
      .gradient(&grad_relu_grad)
      .doc("gradients where features > 0, else 0.");
  r.op("Gelu")
      .input("features", kRealFloats)
      .output("activations")
      .attr("approximate", false)
      .elementwise()
      .gradient(&grad_gelu)
      .doc("x P(X <= x), X standard normal; approximate: by tanh.");
  r.op("GeluGrad")
      .input("gradients", kRealFloats)
      .input("features", kRealFloats)
      .output("backprops")
      .attr("approximate", false)
      .elementwise()
      .gradient(&grad_gelu_grad);
}

void register_bias(OpRegistry& r) {
  r.op("BiasAdd")
      .input("value", kRealNumbers)
      .input("bias", kRealNumbers)
      .output("output")
      .infer(&infer_bias_add)
      .elementwise()
      .gradient(&grad_bias_add);
  r.op("BiasAddGrad")
      .input("out_backprop", kRealNumbers)
      .output("output")
      .infer(&infer_bias_add_grad)
      .split(&split_bias_add_grad)
      .cost([](const InferContext& c) {
        const double n = static_cast<double>(c.shape(0).num_elements());
        return Cost{n, n * static_cast<double>(size_of(c.dtype(0)))};
      })
      .gradient([](const GradCall& g) {
        return Tensors{broadcast_like(g.dy(), g.x(0))};
      });
}

void register_dropout(OpRegistry& r) {
  r.op("Dropout")
      .input("x", kRealFloats)
      .output("y")
      .output("mask")
      .required_attr("rate", 0.0)
      .attr("seed", int64_t{0})
      .attr("op_id", int64_t{0})
      .random()
      .infer([](InferContext& c) {
        check_rate(c);
        c.set_output(0, c.dtype(0), c.shape(0));
        c.set_output(1, uint8, c.shape(0));
      })
      .split(&split_dropout)
      .gradient(&grad_dropout)
      .doc("x / (1 - rate) where mask is 1, else 0; P(mask = 0) = rate.");
  r.op("DropoutGrad")
      .input("gradients", kRealFloats)
      .free_input("mask", dtype_bit(uint8))
      .output("backprops")
      .required_attr("rate", 0.0)
      .infer([](InferContext& c) {
        check_rate(c);
        infer_broadcast(c);
      })
      .elementwise()
      .gradient([](const GradCall& g) {
        return Tensors{call1(g.op(), g.dy(), g.x(1), g.attrs()), {}};
      })
      .doc("gradients * mask / (1 - rate).");
}

}  // namespace

void register_nn_ops(OpRegistry& r) {
  register_activations(r);
  register_bias(r);
  register_dropout(r);
}

}  // namespace berth
