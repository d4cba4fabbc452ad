// Batch normalisation. Of bfloat16 and float16, scale, offset and moments are
// float32.
//
// No split rule: moments of a part are not those of the batch, so that a
// batch norm is the border of a region. Its decomposition can be split: partial
// sums, the count of the whole, and each element.

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/widened.h"

namespace berth {

namespace {

// Fails unless inputs first ... last are [c] with the channels of `x`;
// returns c.
int64_t check_channels(const InferContext& c, const Shape& x, int first,
                       int last) {
  int64_t channels = x[x.rank() - 1];
  for (int i = first; i <= last; ++i) {
    c.expect_rank(i, 1, "[c]");
    channels = c.merge_dims(
        channels, c.shape(i)[0],
        fmt::format("{} is {}, x is {}; expected [{}]", c.op().input(i).name,
                    c.shape(i).str(), x.str(), channels));
  }
  return channels;
}

// Groups of the batch with moments of their own; 1: the batch is one.
int64_t groups_of(const OpDef& op, const Attrs* attrs) {
  const bool training = op.attr<bool>(attrs, "is_training");
  const auto groups = op.attr<int64_t>(attrs, "statistics_groups");
  return training ? std::max<int64_t>(groups, 1) : 1;
}

int64_t check_groups(const InferContext& c, const Shape& x) {
  const auto groups = c.attr<int64_t>("statistics_groups");
  if (groups < 0 || (groups > 0 && x[0] >= 0 && x[0] % groups != 0)) {
    c.fail(fmt::format(
        "statistics_groups is {}, x is {}; expected a divisor of the batch",
        groups, x.str()));
  }
  return groups_of(c.op(), c.attrs());
}

// Moments: [c], or [groups, c].
Shape moments_shape(int64_t groups, int64_t channels) {
  return groups > 1 ? Shape{groups, channels} : Shape{channels};
}

void infer_batch_norm(InferContext& c) {
  const Shape& x = c.shape(0);
  if (x.rank() < 2) {
    c.fail(fmt::format("x is {}; expected [..., c]", x.str()));
  }
  check_parameter_dtype(c, 0, 1);
  check_epsilon(c);
  const int64_t groups = check_groups(c, x);
  if (!c.attr<bool>("is_training") && c.num_inputs() != 5) {
    c.fail("mean and variance are missing; expected both when not training");
  }
  const int64_t channels = check_channels(c, x, 1, c.num_inputs() - 1);
  c.set_output(0, c.dtype(0), x);
  for (int i = 1; i < 3; ++i) c.set_output(i, c.dtype(1), Shape{channels});
  for (int i = 3; i < 5; ++i) {
    c.set_output(i, c.dtype(1), moments_shape(groups, channels));
  }
}

void infer_batch_norm_grad(InferContext& c) {
  const Shape &dy = c.shape(0), &x = c.shape(1);
  check_same_dtype(c, 0, 1);
  check_parameter_dtype(c, 1, 2);
  if (x.rank() < 2 || !dy.compatible_with(x)) {
    c.fail(
        fmt::format("y_backprop is {}, x is {}; expected equal shapes [..., c]",
                    dy.str(), x.str()));
  }
  check_epsilon(c);
  const int64_t groups = check_groups(c, x);
  const int64_t channels = check_channels(c, x, 2, groups > 1 ? 2 : 4);
  for (int i = 3; groups > 1 && i < 5; ++i) {
    const Shape want = moments_shape(groups, channels);
    if (!c.shape(i).compatible_with(want)) {
      c.fail(fmt::format("{} is {}; expected {}", c.op().input(i).name,
                         c.shape(i).str(), want.str()));
    }
  }
  c.set_output(0, c.dtype(0), x);
  c.set_output(1, c.dtype(2), Shape{channels});
  c.set_output(2, c.dtype(2), Shape{channels});
}

// Two sweeps over the arrays: one for the sums, one for the result.
Cost cost_batch_norm(const InferContext& c) {
  const double n = static_cast<double>(c.output(0).shape.num_elements());
  const int arrays = c.num_outputs() == 3 ? 5 : 3;
  return {(2.0 * arrays + 2) * n,
          arrays * n * static_cast<double>(size_of(c.dtype(0)))};
}

AttrsRef attrs_of(double epsilon, bool training, int64_t groups) {
  std::vector<Attrs::Pair> attrs = {{"epsilon", epsilon},
                                    {"is_training", training}};
  if (groups != 1) attrs.push_back({"statistics_groups", groups});
  return AttrsRef(std::move(attrs));
}

Tensors grad_batch_norm(const GradCall& g) {
  const Tensor dy = g.dy();
  const AttrsRef attrs =
      attrs_of(g.attr<double>("epsilon"), g.attr<bool>("is_training"),
               g.attr<int64_t>("statistics_groups"));
  Tensors d = call_many(op_of<"FusedBatchNormGradV3">(),
                        {&dy, &g.x(0), &g.x(1), &g.y(3), &g.y(4)}, attrs.get());
  d.resize(static_cast<size_t>(g.num_inputs()));  // statistics: none
  return d;
}

// Sums and means over all axes but the last: [c]; with groups, of x as
// [groups, rows, c] over the rows of each: [groups, 1, c]. A mean is a sum
// divided by the count of the whole, so that parts of it add up.
class Channels {
 public:
  Channels(const Tensor& x, int64_t groups) : x_(x), groups_(groups) {
    for (int i = 0; i + 1 < x.rank(); ++i) axes_.push_back(i);
    if (groups > 1) axes_ = {1};
  }
  // The groups of an array like x, and the way back.
  Tensor grouped(const Tensor& t) const {
    if (groups_ == 1) return t;
    const Shape& s = t.shape();
    const int64_t n = s.num_elements(), channels = s[s.rank() - 1];
    if (channels < 0) {
      throw errors::InvalidArgument(fmt::format(
          "statistics_groups: x is {}{}; expected a known number of channels",
          s.str(), where_text()));
    }
    const int64_t rows = n < 0 || channels == 0 ? -1 : n / channels / groups_;
    return reshape(t, {groups_, rows, channels}, {});
  }
  Tensor joined(const Tensor& t) const {
    return groups_ == 1 ? t : reshape_like(t, x_);
  }
  // Moments [groups, c] next to grouped arrays, and the way back.
  Tensor spread(const Tensor& m) const {
    return groups_ == 1 ? m : expand_dims(m, 1, {});
  }
  Tensor packed(const Tensor& m) const {
    return groups_ == 1 ? m : squeeze(m, {1}, {});
  }
  Tensor sum(const Tensor& t) const {
    return math::reduce_sum(t, {.axis = axes_, .keepdims = groups_ > 1}, {});
  }
  Tensor mean(const Tensor& t) const {
    const Tensor s = sum(t);
    return s * size_ratio(s, t);
  }
  // Adds up the sums or means of groups: [c].
  Tensor sum_of_groups(const Tensor& s) const {
    if (groups_ == 1) return s;
    return math::reduce_sum(s, {.axis = Axes{0, 1}}, {});
  }
  Tensor mean_of_groups(const Tensor& s) const {
    if (groups_ == 1) return s;
    return math::reduce_mean(s, {.axis = Axes{0, 1}}, {});
  }

 private:
  using Axes = std::vector<int64_t>;
  const Tensor x_;
  const int64_t groups_;
  Axes axes_;
};

// y of given moments, of the dtype of the parameters.
Tensor normalised(std::span<const Tensor> in, const Tensor& mean,
                  const Tensor& variance, double epsilon) {
  return (widened(in[0]) - mean) *
             (math::rsqrt(variance + epsilon, {}) * in[1]) +
         in[2];
}

Tensors decompose_batch_norm(std::span<const Tensor> in, const OpDef& op,
                             const Attrs* attrs) {
  const double epsilon = op.attr<double>(attrs, "epsilon");
  if (!op.attr<bool>(attrs, "is_training")) {
    const Tensor y = rounded_like(normalised(in, in[3], in[4], epsilon), in[0]);
    return {y, in[3], in[4], in[3], in[4]};
  }
  const Channels per(in[0], groups_of(op, attrs));
  const Tensor x = per.grouped(widened(in[0]));
  const Tensor mean = per.mean(x);
  const Tensor variance = per.mean(math::square(x - mean, {}));
  // Bessel's correction; of one element, none.
  const Tensor n = size_ratio(x, mean);
  const Tensor less = math::maximum(n - 1.0, scalar_like(n, 1), {});
  const Tensor operands[] = {x, in[1], in[2]};
  const Tensor y = normalised(operands, mean, variance, epsilon);
  return {rounded_like(per.joined(y), in[0]), per.mean_of_groups(mean),
          per.mean_of_groups(variance * (n / less)), per.packed(mean),
          per.packed(variance)};
}

Tensors decompose_batch_norm_grad(std::span<const Tensor> in, const OpDef& op,
                                  const Attrs* attrs) {
  const Channels per(in[1], groups_of(op, attrs));
  const Tensor dy = per.grouped(widened(in[0])),
               x = per.grouped(widened(in[1]));
  const Tensor r =
      math::rsqrt(per.spread(in[4]) + op.attr<double>(attrs, "epsilon"), {});
  const Tensor h = (x - per.spread(in[3])) * r;
  const Tensor sum = per.sum(dy), dot = per.sum(dy * h);
  const Tensor slope = in[2] * r;
  if (!op.attr<bool>(attrs, "is_training")) {
    return {rounded_like(dy * slope, in[1]), dot, sum};
  }
  const Tensor share = size_ratio(sum, x);
  const Tensor dx = (dy - sum * share - h * (dot * share)) * slope;
  return {rounded_like(per.joined(dx), in[1]), per.sum_of_groups(dot),
          per.sum_of_groups(sum)};
}

// The vector-Jacobian product of (dy, x, scale) -> (dx, dscale, doffset),
// with u, p, q the incoming gradients of the three results. With r the
// inverse deviation and h = (x - mean) * r, training computes
//   dx = scale * r * (dy - mean(dy) - h * mean(dy * h)),
// in which h and r depend on x again.
Tensors grad_batch_norm_grad(const GradCall& g) {
  const Channels per(g.x(1), groups_of(g.op(), g.attrs()));
  const Tensor dy = per.grouped(widened(g.x(0))),
               x = per.grouped(widened(g.x(1)));
  const Tensor scale = g.x(2);
  const Tensor r =
      math::rsqrt(per.spread(g.x(4)) + g.attr<double>("epsilon"), {});
  const Tensor h = (x - per.spread(g.x(3))) * r;
  const Tensor u = per.grouped(widened(g.dy(0))), p = g.dy(1), q = g.dy(2);
  Tensors d(5);
  if (!g.attr<bool>("is_training")) {
    d[0] = rounded_like(u * (scale * r) + p * h + q, g.x(0));
    d[1] = rounded_like(p * r * dy, g.x(1));
    d[2] = per.sum(u * dy) * r;
    return d;
  }
  const Tensor c = per.mean(dy * h), e = per.mean(u * h);
  const Tensor centred = dy - per.mean(dy) - h * c;  // dx / (scale r)
  const Tensor for_dy = scale * r * (u - per.mean(u) - h * e) + p * h + q;
  d[0] = rounded_like(per.joined(for_dy), g.x(0));
  const Tensor w = p * dy - scale * r * (u * c + dy * e);  // for h
  const Tensor through_r = per.mean(u * centred) * (scale * r);
  const Tensor for_x =
      r * (w - per.mean(w) - h * (per.mean(w * h) + through_r));
  d[1] = rounded_like(per.joined(for_x), g.x(1));
  d[2] = per.sum_of_groups(per.sum(u * centred) * r);
  return d;
}

}  // namespace

namespace nn {

FusedBatchNorm fused_batch_norm(const Tensor& x, const Tensor& scale,
                                const Tensor& offset,
                                const FusedBatchNormOptions& options,
                                Site site) {
  static const OpDef& op = op_named("FusedBatchNormV3");
  set_site(site);
  const AttrsRef attrs =
      attrs_of(options.epsilon, options.is_training, options.statistics_groups);
  if (!options.is_training &&
      !(options.mean.defined() && options.variance.defined())) {
    throw errors::InvalidArgument(fmt::format(
        "fused_batch_norm: mean and variance are missing{}; expected both "
        "when is_training is false",
        where_text()));
  }
  const Tensor k = parameter_for(x, scale), b = parameter_for(x, offset);
  Tensors y;
  if (options.is_training) {
    y = call_many(op, {&x, &k, &b}, attrs.get());
  } else {
    const Tensor mean = parameter_for(x, options.mean);
    const Tensor variance = parameter_for(x, options.variance);
    y = call_many(op, {&x, &k, &b, &mean, &variance}, attrs.get());
  }
  return {y[0], y[1], y[2], y[4]};
}

std::pair<Tensor, Tensor> moments(const Tensor& x,
                                  const std::vector<int64_t>& axes,
                                  bool keepdims, Site site) {
  const Tensor mean =
      math::reduce_mean(x, {.axis = axes, .keepdims = true}, site);
  const Tensor squares = math::squared_difference(x, mean, site);
  const math::ReduceOptions over{.axis = axes, .keepdims = keepdims};
  const Tensor variance = math::reduce_mean(squares, over, site);
  return {keepdims ? mean : math::reduce_mean(x, over, site), variance};
}

}  // namespace nn

void register_norm_ops(OpRegistry& r) {
  r.op("FusedBatchNormV3")
      .free_input("x", kRealFloats)
      .input("scale", kFloatingTypes)
      .input("offset", kFloatingTypes)
      .optional_input("mean", kFloatingTypes)
      .optional_input("variance", kFloatingTypes)
      .output("y")
      .output("batch_mean")
      .output("batch_variance")
      .output("reserve_space_1")
      .output("reserve_space_2")
      .attr("epsilon", 0.0001)
      .attr("is_training", true)
      .attr("statistics_groups", int64_t{1})
      .infer(&infer_batch_norm)
      .cost(&cost_batch_norm)
      .gradient(&grad_batch_norm)
      .decompose(&decompose_batch_norm)
      .doc(
          "Per channel of x [..., c]. reserve_space: mean and biased "
          "variance in use, for the gradient; batch_variance is unbiased. "
          "Training with statistics_groups n > 1, each n-th of the batch has "
          "its own moments: reserve_space is [n, c], batch_mean and "
          "batch_variance their means.");
  r.op("FusedBatchNormGradV3")
      .free_input("y_backprop", kRealFloats)
      .free_input("x", kRealFloats)
      .input("scale", kFloatingTypes)
      .input("reserve_space_1", kFloatingTypes)
      .input("reserve_space_2", kFloatingTypes)
      .output("x_backprop")
      .output("scale_backprop")
      .output("offset_backprop")
      .attr("epsilon", 0.0001)
      .attr("is_training", true)
      .attr("statistics_groups", int64_t{1})
      .infer(&infer_batch_norm_grad)
      .cost(&cost_batch_norm)
      .gradient(&grad_batch_norm_grad)
      .decompose(&decompose_batch_norm_grad);
}

}  // namespace berth
