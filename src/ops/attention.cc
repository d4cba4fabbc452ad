// MaskedSoftmax, the softmax of scaled and masked scores.
//
// One op so that scores are read and written once; its gradient needs the
// result alone, neither mask nor scores. dot_product_attention.cc has what is
// made of it.

#include "ops/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "ops/families.h"
#include "ops/op_call.h"
#include "ops/widened.h"

namespace berth {

namespace {

void infer_masked_softmax(InferContext& c) {
  const Shape& x = c.shape(0);
  if (x.rank() < 2) {
    c.fail(fmt::format("logits is {}; expected [..., s, t]", x.str()));
  }
  if (c.num_inputs() == 2 &&
      !broadcast_shapes(c, x, c.shape(1)).compatible_with(x)) {
    c.fail(
        fmt::format("mask is {}, logits is {}; expected a mask that "
                    "broadcasts to the logits",
                    c.shape(1).str(), x.str()));
  }
  if (!std::isfinite(c.attr<double>("scale"))) {
    c.fail(fmt::format("scale is {}; expected a finite number",
                       c.attr<double>("scale")));
  }
  c.set_output(0, c.dtype(0), x);
}

// Rows are independent; a causal row must know which one it is.
std::vector<SplitSignature> split_masked_softmax(const InferContext& c) {
  const Shape& x = c.shape(0);
  const bool causal = c.attr<bool>("is_causal");
  std::vector<SplitSignature> rules;
  for (int8_t i = 0; i < x.rank() - (causal ? 2 : 1); ++i) {
    SplitSignature rule{{i}, {i}};
    if (c.num_inputs() == 2) {
      const int m = i - (x.rank() - c.shape(1).rank());
      const int64_t length = m < 0 ? 1 : c.shape(1)[m];
      if (length < 0) continue;
      if (length == 1 && x[i] == 1) continue;
      rule.inputs.push_back(
          static_cast<int8_t>(length == 1 ? SplitSignature::kWhole : m));
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

Tensors grad_masked_softmax(const GradCall& g) {
  const Tensor y = widened(g.y());
  const Tensor weighted = widened(g.dy()) * y;
  const Tensor sum = math::reduce_sum(
      weighted, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, {});
  const Tensor d = weighted - sum * y;
  Tensors result(static_cast<size_t>(g.num_inputs()));
  const double scale = g.attr<double>("scale");
  if (g.needs(0)) result[0] = rounded_like(scale == 1 ? d : d * scale, g.x(0));
  if (g.num_inputs() == 2 && g.needs(1)) {
    result[1] = rounded_like(sum_to(d, g.x(1)), g.x(1));
  }
  return result;
}

}  // namespace

Tensor added_mask(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != bool_) return mask;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor zero = fill({}, 0, dtype, {});
  return where(mask, zero, fill({}, -kInfinity, dtype, {}), {});
}

namespace nn {

Tensor masked_softmax(const Tensor& logits, const Tensor& mask,
                      const MaskedSoftmaxOptions& options, Site site) {
  static const OpDef& op = op_named("MaskedSoftmax");
  const Tensor added = added_mask(mask, logits.dtype());
  set_site(site);
  const AttrsRef attrs(
      {{"scale", options.scale}, {"is_causal", options.is_causal}});
  if (!added.defined()) return call1(op, logits, attrs.get());
  return call1(op, logits, added, attrs.get());
}

Tensor embedding_lookup(const Tensor& params, const Tensor& ids, Site site) {
  return gather(params, ids, 0, site);
}

}  // namespace nn

void register_attention_ops(OpRegistry& r) {
  r.op("MaskedSoftmax")
      .input("logits", kRealFloats)
      .optional_input("mask", kRealFloats)
      .output("softmax")
      .attr("scale", 1.0)
      .attr("is_causal", false)
      .infer(&infer_masked_softmax)
      .split(&split_masked_softmax)
      .gradient(&grad_masked_softmax)
      .cost([](const InferContext& c) {
        const double n = static_cast<double>(c.shape(0).num_elements());
        return Cost{12 * n, 2 * n * static_cast<double>(size_of(c.dtype(0)))};
      })
      .doc(
          "softmax(logits * scale + mask) over the last axis; causal: row i "
          "sees columns 0 to i. A row of -inf gives zeros.");
}

}  // namespace berth
