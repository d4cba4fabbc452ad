// Softmax and the cross-entropies over it.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "op/device_scope.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/widened.h"

namespace berth {

namespace {

// Sum over the last axis, which stays as 1.
Tensor row_sum(const Tensor& x) {
  return math::reduce_sum(
      x, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, {});
}

// [n] -> [n, 1]
Tensor column(const Tensor& v) { return reshape(v, {kUnknownDim, 1}, {}); }

void infer_softmax(InferContext& c) {
  if (c.shape(0).rank() < 1) {
    c.fail("logits is a scalar; expected [..., c]");
  }
  infer_same_as_0(c);
}

// Every axis but the last, in which elements depend on each other.
std::vector<SplitSignature> split_rows(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int8_t i = 0; i + 1 < c.shape(0).rank(); ++i) {
    rules.push_back({{i}, {i}});
  }
  return rules;
}

// exp, sum, divide, maximum: about ten operations per element.
Cost cost_softmax(const InferContext& c) {
  const double n = static_cast<double>(c.shape(0).num_elements());
  const double arrays = c.num_inputs() + c.num_outputs() > 3 ? 3 : 2;
  return {10 * n, arrays * n * static_cast<double>(size_of(c.dtype(0)))};
}

Tensors grad_softmax(const GradCall& g) {
  const Tensor y = widened(g.y());
  const Tensor weighted = widened(g.dy()) * y;
  return {rounded_like(weighted - row_sum(weighted) * y, g.y())};
}

Tensors grad_log_softmax(const GradCall& g) {
  const Tensor dy = widened(g.dy());
  const Tensor dx = dy - math::exp(widened(g.y()), {}) * row_sum(dy);
  return {rounded_like(dx, g.y())};
}

// loss [n], backprop [n, c]; the second output is the first's gradient.
void infer_cross_entropy(InferContext& c) {
  c.expect_rank(0, 2, "[n, c]");
  const bool sparse = c.shape(1).rank() == 1;
  const Shape &x = c.shape(0), &labels = c.shape(1);
  Shape out = x;
  for (int i = 0; i < labels.rank(); ++i) {
    out[i] = c.merge_dims(
        x[i], labels[i],
        fmt::format("features is {}, labels is {}; expected labels {}", x.str(),
                    labels.str(), sparse ? Shape{x[0]}.str() : x.str()));
  }
  c.set_output(0, c.dtype(0), Shape{out[0]});
  c.set_output(1, c.dtype(0), out);
}

std::vector<SplitSignature> split_cross_entropy(const InferContext&) {
  return {{{0, 0}, {0, 0}}};
}

// backprop = softmax(features) - labels, so its own gradient is softmax's.
Tensor grad_features(const GradCall& g) {
  Tensor d;
  if (g.has_dy(0)) d = column(g.dy(0)) * g.y(1);
  if (g.has_dy(1)) {
    const Tensor p = widened(call1(op_of<"Softmax">(), g.x(0)));
    const Tensor weighted = widened(g.dy(1)) * p;
    const Tensor second =
        rounded_like(weighted - row_sum(weighted) * p, g.dy(1));
    d = d.defined() ? d + second : second;
  }
  return d;
}

Tensor grad_labels(const GradCall& g) {
  Tensor d;
  if (g.has_dy(0))
    d = -(column(g.dy(0)) * call1(op_of<"LogSoftmax">(), g.x(0)));
  if (g.has_dy(1)) d = d.defined() ? d - g.dy(1) : -g.dy(1);
  return d;
}

// Softmax along an inner axis, where there is no kernel.
Tensor shifted(const Tensor& x, const math::ReduceOptions& along) {
  return x - stop_gradient(math::reduce_max(x, along, {}), {});
}

}  // namespace

namespace nn {

Tensor softmax(const Tensor& x, int64_t axis, Site site) {
  set_site(site);
  const int rank = x.rank();
  if (rank == 0 || normalize_axis(axis, rank, "softmax") == rank - 1) {
    return call1(op_of<"Softmax">(), x);
  }
  const math::ReduceOptions along{.axis = std::vector<int64_t>{axis},
                                  .keepdims = true};
  const Tensor e = math::exp(shifted(x, along), {});
  return e / math::reduce_sum(e, along, {});
}

Tensor log_softmax(const Tensor& x, int64_t axis, Site site) {
  set_site(site);
  const int rank = x.rank();
  if (rank == 0 || normalize_axis(axis, rank, "log_softmax") == rank - 1) {
    return call1(op_of<"LogSoftmax">(), x);
  }
  const math::ReduceOptions along{.axis = std::vector<int64_t>{axis},
                                  .keepdims = true};
  const Tensor s = shifted(x, along);
  return s - math::log(math::reduce_sum(math::exp(s, {}), along, {}), {});
}

Tensor softmax_cross_entropy_with_logits(const Tensor& labels,
                                         const Tensor& logits, Site site) {
  set_site(site);
  if (logits.rank() == 2)
    return call_many(op_of<"SoftmaxCrossEntropyWithLogits">(),
                     {&logits, &labels})[0];
  return -math::reduce_sum(labels * log_softmax(logits, -1, site),
                           {.axis = std::vector<int64_t>{-1}}, site);
}

Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels,
                                                const Tensor& logits,
                                                Site site) {
  static const OpDef& op = op_named("SparseSoftmaxCrossEntropyWithLogits");
  set_site(site);
  if (logits.rank() <= 2 && labels.rank() == 1) {
    return call_many(op, {&logits, &labels})[0];
  }
  if (logits.rank() != labels.rank() + 1) {
    throw errors::InvalidArgument(fmt::format(
        "{}: logits is {}, labels is {}{}; expected labels of one axis less",
        op.name(), logits.shape().str(), labels.shape().str(), where_text()));
  }
  const int64_t classes = logits.shape()[logits.rank() - 1];
  const Tensor rows = reshape(logits, {kUnknownDim, classes}, site);
  const Tensor flat = reshape(labels, {kUnknownDim}, site);
  const Tensor loss = call_many(op, {&rows, &flat})[0];
  if (labels.shape().is_fully_defined()) {
    return reshape(loss, labels.shape(), site);
  }
  return call1(op_of<"ReshapeLike">(), loss, labels);
}

}  // namespace nn

void register_softmax_ops(OpRegistry& r) {
  for (const char* name : {"Softmax", "LogSoftmax"}) {
    r.op(name)
        .input("logits", kRealFloats)
        .output(name[0] == 'S' ? "softmax" : "logsoftmax")
        .infer(&infer_softmax)
        .cost(&cost_softmax)
        .split(&split_rows)
        .gradient(name[0] == 'S' ? &grad_softmax : &grad_log_softmax)
        .doc("Along the last axis.");
  }
  r.op("SoftmaxCrossEntropyWithLogits")
      .input("features", kRealFloats)
      .input("labels", kRealFloats)
      .output("loss")
      .output("backprop")
      .infer([](InferContext& c) {
        c.expect_rank(1, 2, "[n, c]");
        infer_cross_entropy(c);
      })
      .cost(&cost_softmax)
      .split(&split_cross_entropy)
      .gradient([](const GradCall& g) {
        return Tensors{g.needs(0) ? grad_features(g) : Tensor(),
                       g.needs(1) ? grad_labels(g) : Tensor()};
      })
      .doc("loss [n], and its gradient for features as a second output.");
  r.op("SparseSoftmaxCrossEntropyWithLogits")
      .input("features", kRealFloats)
      .free_input("labels", kIndexTypes)
      .output("loss")
      .output("backprop")
      .infer([](InferContext& c) {
        c.expect_rank(1, 1, "[n]");
        infer_cross_entropy(c);
      })
      .cost(&cost_softmax)
      .split(&split_cross_entropy)
      .gradient([](const GradCall& g) {
        return Tensors{grad_features(g), {}};
      })
      .doc("The same with the number of the true class per row.");
}

}  // namespace berth
