// Attention as one op, for backends that compute it in one kernel.
//
// Elsewhere it decomposes into MatMul, MaskedSoftmax and MatMul, and its
// gradient into theirs. The gradient's weights are those of the forward op
// again: a plan merges the two (cse_parts); a tape that runs eagerly records
// the parts where the device has no kernel.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/immortal.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "device/device.h"
#include "op/device_scope.h"
#include "op/kernel.h"
#include "ops/attention.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/widened.h"

namespace berth {

namespace {

const Attrs* transpose_b() {
  using Pairs = std::vector<Attrs::Pair>;
  static const auto& attrs = immortal<AttrsRef>(Pairs{{"transpose_b", true}});
  return attrs.get();
}

Shape leading(const Shape& s) {
  Shape lead = s;
  lead.erase(lead.rank() - 1);
  lead.erase(lead.rank() - 1);
  return lead;
}

// Fails where inputs a and b differ in axes that must agree.
void check_equal(const InferContext& c, int a, int axis_a, int b, int axis_b) {
  const Shape &x = c.shape(a), &y = c.shape(b);
  const int64_t m = x[x.rank() + axis_a], n = y[y.rank() + axis_b];
  if (m < 0 || n < 0 || m == n) return;
  c.fail(fmt::format("{} is {}, {} is {}; expected {}.shape[{}] == {}",
                     c.op().input(a).name, x.str(), c.op().input(b).name,
                     y.str(), c.op().input(b).name, axis_b, m));
}

// Checks query, key, value and the mask at position `mask`; returns the shape
// of the scores.
Shape scores_shape(const InferContext& c, int mask) {
  for (int i = 0; i < 3; ++i) {
    if (c.shape(i).rank() < 2) {
      c.fail(fmt::format("{} is {}; expected [..., length, d]",
                         c.op().input(i).name, c.shape(i).str()));
    }
  }
  check_equal(c, 0, -1, 1, -1);
  check_equal(c, 1, -2, 2, -2);
  const Shape &q = c.shape(0), &k = c.shape(1);
  Shape scores = broadcast_shapes(c, leading(q), leading(k));
  scores.push_back(q[q.rank() - 2]);
  scores.push_back(k[k.rank() - 2]);
  if (c.num_inputs() > mask &&
      !broadcast_shapes(c, scores, c.shape(mask)).compatible_with(scores)) {
    c.fail(
        fmt::format("mask is {}, scores are {}; expected a mask that "
                    "broadcasts to the scores",
                    c.shape(mask).str(), scores.str()));
  }
  if (!std::isfinite(c.attr<double>("scale"))) {
    c.fail(fmt::format("scale is {}; expected a finite number",
                       c.attr<double>("scale")));
  }
  return scores;
}

DType widened_dtype(DType d) { return dtype_bit(d) & kHalfTypes ? float32 : d; }

void infer_attention(InferContext& c) {
  const Shape scores = scores_shape(c, 3);
  const Shape& v = c.shape(2);
  Shape rows = scores;
  rows.erase(rows.rank() - 1);
  Shape y = broadcast_shapes(c, leading(scores), leading(v));
  y.push_back(rows[rows.rank() - 1]);
  y.push_back(v[v.rank() - 1]);
  c.set_output(0, c.dtype(0), y);
  c.set_output(1, widened_dtype(c.dtype(0)), rows);
}

void infer_attention_grad(InferContext& c) {
  scores_shape(c, 6);
  for (int i = 0; i < 3; ++i) c.set_output(i, c.dtype(0), c.shape(i));
  if (!c.attr<bool>("mask_grad")) return;
  if (c.num_inputs() < 7) c.fail("mask is missing; expected it for mask_grad");
  c.set_output(3, c.dtype(0), c.shape(6));
}

// Two products forwards, five backwards, whose scores stay on the device.
Cost cost_attention(const InferContext& c) {
  const Shape &q = c.shape(0), &k = c.shape(1), &v = c.shape(2);
  const bool grad = c.op().name() == "ScaledDotProductAttentionGrad";
  const double rows = static_cast<double>(
      q.num_elements() / std::max<int64_t>(1, q[q.rank() - 1]));
  const double scores = rows * static_cast<double>(k[k.rank() - 2]);
  const auto d = static_cast<double>(q[q.rank() - 1]),
             e = static_cast<double>(v[v.rank() - 1]);
  double values = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    values += static_cast<double>(c.shape(i).num_elements());
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    values += static_cast<double>(c.output(i).shape.num_elements());
  }
  return {scores * (grad ? 6 * d + 4 * e + 24 : 2 * d + 2 * e + 12),
          values * static_cast<double>(size_of(c.dtype(0)))};
}

// The axis of `s` that is axis i of a result of that rank, or kWhole.
int8_t axis_in(const Shape& s, int i, int rank) {
  const int at = i - (rank - s.rank());
  return static_cast<int8_t>(at < 0 || s[at] == 1 ? SplitSignature::kWhole
                                                  : at);
}

// Sequences, that is leading axes; of the gradient where all have them and
// none is summed over.
std::vector<SplitSignature> split_attention(const InferContext& c) {
  const bool grad = c.num_outputs() > 2;
  const int rank = c.output(0).shape.rank();
  std::vector<SplitSignature> rules;
  if (grad && c.attr<bool>("mask_grad")) return rules;
  for (int8_t i = 0; i < rank - 2; ++i) {
    SplitSignature rule;
    bool own = c.output(0).shape[i] != 1;
    for (int k = 0; k < c.num_inputs(); ++k) {
      // Logarithms have one axis less after the leading ones.
      const bool sums = grad && k == 4;
      rule.inputs.push_back(axis_in(c.shape(k), i, sums ? rank - 1 : rank));
      const bool mask = k == (grad ? 6 : 3);
      own = own && (mask || !grad || rule.inputs.back() == i);
      // Whether such an axis of a mask is 1 is not known yet.
      const int8_t axis = rule.inputs.back();
      own = own && !(mask && axis >= 0 && c.shape(k)[axis] < 0);
    }
    const bool of_scores = rule.inputs[0] >= 0 || rule.inputs[1] >= 0;
    if (!own || !of_scores) continue;
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()), i);
    if (!grad) {
      rule.outputs[1] = axis_in(c.output(1).shape, i, rank - 1);
      if (rule.outputs[1] < 0) continue;
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

// Scores, and the weights made of them.
struct Weights {
  Tensor scores, weights;
  AttrsRef attrs;
};

Weights weights_of(const Tensor& q, const Tensor& k, const Tensor& mask,
                   double scale, bool causal) {
  Weights w;
  w.attrs = AttrsRef({{"scale", scale}, {"is_causal", causal}});
  w.scores = call1(op_of<"MatMul">(), q, k, transpose_b());
  w.weights =
      mask.defined()
          ? call1(op_of<"MaskedSoftmax">(), w.scores, mask, w.attrs.get())
          : call1(op_of<"MaskedSoftmax">(), w.scores, w.attrs.get());
  return w;
}

// Logarithms of the sums of exponentials that the weights are divided by.
Tensor logarithms(const Tensor& scores, const Tensor& mask, double scale,
                  bool causal) {
  Tensor z = widened(scores);
  if (scale != 1) z = z * scale;
  if (mask.defined()) z = z + widened(mask);
  if (causal) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Tensor seen = linalg::band_part(ones_like(z, {}), -1, 0, {}) > 0;
    z = where(seen, z, fill({}, -kInfinity, z.dtype(), {}), {});
  }
  return math::reduce_logsumexp(z, {.axis = std::vector<int64_t>{-1}}, {});
}

Tensor input_or_none(std::span<const Tensor> in, size_t i) {
  return in.size() > i ? in[i] : Tensor();
}

Tensors decompose_attention(std::span<const Tensor> in, const OpDef& op,
                            const Attrs* attrs) {
  const auto scale = op.attr<double>(attrs, "scale");
  const bool causal = op.attr<bool>(attrs, "is_causal");
  const Tensor mask = input_or_none(in, 3);
  const Weights w = weights_of(in[0], in[1], mask, scale, causal);
  const Tensor y = call1(op_of<"MatMul">(), w.weights, in[2]);
  return {y, logarithms(w.scores, mask, scale, causal)};
}

// The gradients of an op's inputs by its rule.
Tensors by_rule(const OpDef& op, const Attrs* attrs, const Tensors& in,
                const Tensor& y, const Tensor& dy) {
  const Tensor out[] = {y}, grads[] = {dy};
  return op.gradient()(
      GradCall(op, attrs, in, out, grads, std::vector<bool>(in.size(), true)));
}

// Gradients of query, key, value, mask, given that of the weights, to which
// value has contributed already.
Tensors back_from_weights(const Tensor& q, const Tensor& k, const Tensor& mask,
                          const Weights& w, const Tensor& dweights) {
  Tensors in{w.scores};
  if (mask.defined()) in.push_back(mask);
  const Tensors d =
      by_rule(op_of<"MaskedSoftmax">(), w.attrs.get(), in, w.weights, dweights);
  const Tensors dx =
      by_rule(op_of<"MatMul">(), transpose_b(), {q, k}, w.scores, d[0]);
  return {dx[0], dx[1], Tensor(), mask.defined() ? d[1] : Tensor()};
}

// Does what the gradients of the parts do, one after the other.
Tensors decompose_attention_grad(std::span<const Tensor> in, const OpDef& op,
                                 const Attrs* attrs) {
  const Tensor mask = input_or_none(in, 6);
  const Weights w =
      weights_of(in[0], in[1], mask, op.attr<double>(attrs, "scale"),
                 op.attr<bool>(attrs, "is_causal"));
  const Tensors d =
      by_rule(op_of<"MatMul">(), nullptr, {w.weights, in[2]}, in[3], in[5]);
  Tensors all = back_from_weights(in[0], in[1], mask, w, d[0]);
  all[2] = d[1];
  if (!op.attr<bool>(attrs, "mask_grad")) all.pop_back();
  return all;
}

// Adds what the logarithms contribute: their gradient by a score is its weight.
void add_of_logarithms(const GradCall& g, const Tensor& mask, Tensors& d) {
  const Weights w = weights_of(g.x(0), g.x(1), mask, g.attr<double>("scale"),
                               g.attr<bool>("is_causal"));
  const Tensor dz = widened(w.weights) * expand_dims(g.dy(1), -1, {});
  const Tensor dscores = rounded_like(dz * g.attr<double>("scale"), w.scores);
  const Tensors dx = by_rule(op_of<"MatMul">(), transpose_b(), {g.x(0), g.x(1)},
                             w.scores, dscores);
  d[0] = d[0] + dx[0];
  d[1] = d[1] + dx[1];
  if (d.size() > 3) d[3] = d[3] + rounded_like(sum_to(dz, mask), mask);
}

Tensors grad_attention(const GradCall& g) {
  const bool masked = g.num_inputs() > 3;
  const Tensor mask = masked ? g.x(3) : Tensor();
  std::vector<Attrs::Pair> attrs = {{"scale", g.attr<double>("scale")},
                                    {"is_causal", g.attr<bool>("is_causal")}};
  if (masked && g.needs(3)) attrs.push_back({"mask_grad", true});
  const AttrsRef with(std::move(attrs));
  Tensors in{g.x(0), g.x(1), g.x(2), g.y(0), g.y(1), g.dy(0)};
  if (masked) in.push_back(mask);
  Tensors d =
      call_list(op_of<"ScaledDotProductAttentionGrad">(), in, with.get());
  if (g.has_dy(1)) add_of_logarithms(g, mask, d);
  return d;
}

// True where the call is one op: in a trace, since passes know the device, and
// on a device that has a kernel. Elsewhere a tape should see the parts.
bool is_one_op(const OpDef& op, const Tensor& query, const Tensor& mask) {
  if (tracing()) return true;
  const Device* device = t_state.scope_device;
  if (device == nullptr) device = query.impl()->device;
  return device != nullptr && !mask.defined() &&
         !device->kernels().candidates(op).empty();
}

double scale_of(const Tensor& query, const nn::AttentionOptions& options) {
  const Shape& q = query.shape();
  const int64_t d = q.rank() < 2 ? kUnknownDim : q[q.rank() - 1];
  if (q.rank() < 2 || (d < 1 && !options.scale)) {
    throw errors::InvalidArgument(fmt::format(
        "scaled_dot_product_attention: query is {}{}; expected [..., s, d] "
        "with d known and at least 1, or options.scale",
        q.str(), where_text()));
  }
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(d)));
}

}  // namespace

namespace nn {

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                    const Tensor& value,
                                    const AttentionOptions& options,
                                    Site site) {
  static const OpDef& op = op_named("ScaledDotProductAttention");
  set_site(site);
  const double scale = scale_of(query, options);
  const Tensor mask = added_mask(options.mask, query.dtype());
  set_site(site);
  if (options.dropout == 0 && is_one_op(op, query, mask)) {
    const AttrsRef attrs({{"scale", scale}, {"is_causal", options.is_causal}});
    Tensors in{query, key, value};
    if (mask.defined()) in.push_back(mask);
    return call_list(op, in, attrs.get())[0];
  }
  const Weights w = weights_of(query, key, mask, scale, options.is_causal);
  Tensor weights = w.weights;
  if (options.dropout != 0) {
    weights = dropout(weights, options.dropout, {.seed = options.seed}, site);
  }
  return matmul(weights, value, {}, site);
}

}  // namespace nn

void register_dot_product_attention_ops(OpRegistry& r) {
  r.op("ScaledDotProductAttention")
      .input("query", kRealFloats)
      .input("key", kRealFloats)
      .input("value", kRealFloats)
      .optional_input("mask", kRealFloats)
      .output("result")
      .output("logarithms")
      .attr("scale", 1.0)
      .attr("is_causal", false)
      .infer(&infer_attention)
      .split(&split_attention)
      .gradient(&grad_attention)
      .decompose(&decompose_attention)
      .cost(&cost_attention)
      .doc(
          "MaskedSoftmax(query key^T, mask) value: query [..., s, d], key "
          "[..., t, d], value [..., t, e] -> [..., s, e]. logarithms [..., s]: "
          "of the sums of exponentials of scores, for the gradient; float32 "
          "beside 16 bits.");
  r.op("ScaledDotProductAttentionGrad")
      .input("query", kRealFloats)
      .input("key", kRealFloats)
      .input("value", kRealFloats)
      .input("result", kRealFloats)
      .free_input("logarithms", kFloatingTypes)
      .input("result_backprop", kRealFloats)
      .optional_input("mask", kRealFloats)
      .output("query_backprop")
      .output("key_backprop")
      .output("value_backprop")
      .output("mask_backprop")
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        return 3 + op.attr<bool>(attrs, "mask_grad");
      })
      .attr("scale", 1.0)
      .attr("is_causal", false)
      .attr("mask_grad", false)
      .infer(&infer_attention_grad)
      .split(&split_attention)
      .decompose(&decompose_attention_grad)
      .cost(&cost_attention)
      .doc("Gradients of ScaledDotProductAttention; mask_grad: of its mask.");
}

}  // namespace berth
