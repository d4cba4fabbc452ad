// Layer normalisation: rows over the last axis. Of bfloat16 and float16,
// scale, offset and what is kept for the gradient are float32.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/widened.h"

namespace berth {

namespace {

constexpr int8_t kWholeRow = SplitSignature::kWhole;
constexpr int8_t kSummedRow = SplitSignature::kPartialSum;

Shape rows_of(const Shape& x) {
  Shape rows;
  for (int i = 0; i + 1 < x.rank(); ++i) rows.push_back(x[i]);
  return rows;
}

// Fails unless inputs first ... last are [d] with the last axis of `x`.
int64_t check_width(const InferContext& c, const Shape& x, int first,
                    int last) {
  int64_t d = x[x.rank() - 1];
  for (int i = first; i <= last; ++i) {
    c.expect_rank(i, 1, "[d]");
    d = c.merge_dims(
        d, c.shape(i)[0],
        fmt::format("{} is {}, x is {}; expected [{}]", c.op().input(i).name,
                    c.shape(i).str(), x.str(), d));
  }
  return d;
}

void infer_layer_norm(InferContext& c) {
  const Shape& x = c.shape(0);
  check_parameter_dtype(c, 0, 1);
  if (x.rank() < 1) c.fail("x is a scalar; expected [..., d]");
  check_epsilon(c);
  Shape y = x;
  y[y.rank() - 1] = check_width(c, x, 1, 2);
  c.set_output(0, c.dtype(0), y);
  c.set_output(1, c.dtype(1), rows_of(x));
  c.set_output(2, c.dtype(1), rows_of(x));
}

void infer_layer_norm_grad(InferContext& c) {
  const Shape &dy = c.shape(0), &x = c.shape(1);
  check_same_dtype(c, 0, 1);
  check_parameter_dtype(c, 1, 2);
  if (x.rank() < 1 || !dy.compatible_with(x)) {
    c.fail(fmt::format("dy is {}, x is {}; expected equal shapes [..., d]",
                       dy.str(), x.str()));
  }
  const Shape rows = rows_of(x);
  for (int i = 3; i <= 4; ++i) {
    if (c.shape(i).compatible_with(rows)) continue;
    c.fail(fmt::format("{} is {}, x is {}; expected {}", c.op().input(i).name,
                       c.shape(i).str(), x.str(), rows.str()));
  }
  const int64_t d = check_width(c, x, 2, 2);
  c.set_output(0, c.dtype(0), x);
  c.set_output(1, c.dtype(2), Shape{d});
  c.set_output(2, c.dtype(2), Shape{d});
}

// Rows are independent.
std::vector<SplitSignature> split_layer_norm(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int8_t a = 0; a + 1 < c.shape(0).rank(); ++a) {
    rules.push_back({{a, kWholeRow, kWholeRow}, {a, a, a}});
  }
  return rules;
}

std::vector<SplitSignature> split_layer_norm_grad(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int8_t a = 0; a + 1 < c.shape(0).rank(); ++a) {
    rules.push_back({{a, a, kWholeRow, a, a}, {a, kSummedRow, kSummedRow}});
  }
  return rules;
}

Cost cost_layer_norm(const InferContext& c) {
  const double n = static_cast<double>(c.output(0).shape.num_elements());
  const int arrays = c.num_inputs() == 5 ? 3 : 2;
  return {(arrays == 3 ? 12 : 8) * n,
          arrays * n * static_cast<double>(size_of(c.dtype(0)))};
}

Tensors grad_layer_norm(const GradCall& g) {
  const Tensor dy = g.dy();
  return call_many(op_of<"LayerNormGrad">(),
                   {&dy, &g.x(0), &g.x(1), &g.y(1), &g.y(2)});
}

// Means over the last axis, kept as 1: [..., 1].
Tensor row_mean(const Tensor& t) {
  return math::reduce_mean(
      t, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, {});
}

// The vector-Jacobian product of (dy, x, scale) -> (dx, dscale, doffset), with
// u, p, q the incoming gradients of the three results. With r the inverse
// deviation, h = (x - mean) r and k = dy * scale,
//   dx = r (k - mean(k) - h mean(k h)),
// in which h and r depend on x again.
Tensors grad_layer_norm_grad(const GradCall& g) {
  const Tensor dy = widened(g.x(0)), x = widened(g.x(1)), scale = g.x(2);
  const Tensor r = expand_dims(g.x(4), -1, {});
  const Tensor h = (x - expand_dims(g.x(3), -1, {})) * r;
  const Tensor u = widened(g.dy(0)), p = g.dy(1), q = g.dy(2);
  const Tensor k = dy * scale;
  const Tensor c = row_mean(k * h), e = row_mean(u * h);
  const Tensor for_k = r * (u - row_mean(u) - h * e);
  const Tensor centred = k - row_mean(k) - h * c;  // dx / r
  const Tensor w = p * dy - r * (u * c + k * e);   // for h
  const Tensor through_r = row_mean(u * centred) * r;
  Tensors d(5);
  d[0] = rounded_like(for_k * scale + p * h + q, g.x(0));
  d[1] = rounded_like(r * (w - row_mean(w) - h * (row_mean(w * h) + through_r)),
                      g.x(1));
  d[2] = sum_to(for_k * dy, scale);
  return d;
}

}  // namespace

namespace nn {

Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                  double epsilon, Site site) {
  set_site(site);
  const AttrsRef attrs({{"epsilon", epsilon}});
  const Tensor k = parameter_for(x, scale), b = parameter_for(x, offset);
  return call_many(op_of<"LayerNorm">(), {&x, &k, &b}, attrs.get())[0];
}

}  // namespace nn

void register_layer_norm_ops(OpRegistry& r) {
  r.op("LayerNorm")
      .free_input("x", kRealFloats)
      .input("scale", kFloatingTypes)
      .input("offset", kFloatingTypes)
      .output("y")
      .output("mean")
      .output("rstd")
      .attr("epsilon", 1e-3)
      .infer(&infer_layer_norm)
      .split(&split_layer_norm)
      .cost(&cost_layer_norm)
      .gradient(&grad_layer_norm)
      .doc(
          "(x - mean) rstd scale + offset per row of x [..., d]; rstd = "
          "1 / sqrt(variance + epsilon). mean, rstd [...] are for the "
          "gradient and pass none on.");
  r.op("LayerNormGrad")
      .free_input("dy", kRealFloats)
      .free_input("x", kRealFloats)
      .input("scale", kFloatingTypes)
      .input("mean", kFloatingTypes)
      .input("rstd", kFloatingTypes)
      .output("dx")
      .output("dscale")
      .output("doffset")
      .infer(&infer_layer_norm_grad)
      .split(&split_layer_norm_grad)
      .cost(&cost_layer_norm)
      .gradient(&grad_layer_norm_grad)
      .doc("Gradients of LayerNorm by x, scale and offset.");
}

}  // namespace berth
