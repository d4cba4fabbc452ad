// Norms over channels and pixels of one example: group, RMS and local
// response normalisation. All are made of other ops.
//
// Of bfloat16 and float16, scale and offset are float32, and so is all that is
// computed; the result is rounded once.
//
// No batch statistics: examples are independent, so each can be split by them.

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

using Sizes = std::vector<int64_t>;

int64_t last_of(const Shape& s) { return s[s.rank() - 1]; }

// y like x [..., c]; the other operands are [c].
void infer_channel_norm(InferContext& c, int least_rank, const char* form) {
  const Shape& x = c.shape(0);
  if (x.rank() < least_rank) {
    c.fail(fmt::format("x is {}; expected {}", x.str(), form));
  }
  if (c.num_inputs() > 1) check_parameter_dtype(c, 0, 1);
  Shape out = x;
  for (int i = 1; i < c.num_inputs(); ++i) {
    c.expect_rank(i, 1, "[c]");
    int64_t& last = out[out.rank() - 1];
    last = c.merge_dims(
        last, c.shape(i)[0],
        fmt::format("{} is {}, x is {}; expected [{}]", c.op().input(i).name,
                    c.shape(i).str(), x.str(), last));
  }
  c.set_output(0, c.dtype(0), out);
}

void infer_group_norm(InferContext& c) {
  infer_channel_norm(c, 2, "[n, ..., c]");
  check_epsilon(c);
  const int64_t groups = c.attr<int64_t>("num_groups");
  const int64_t channels = last_of(c.output(0).shape);
  if (groups < 1 || (channels >= 0 && channels % groups != 0)) {
    c.fail(
        fmt::format("num_groups is {}, x is {}; expected a divisor of the "
                    "number of channels",
                    groups, c.shape(0).str()));
  }
}

// Axes [0, count) are independent of each other.
std::vector<SplitSignature> split_leading(const InferContext& c, int count) {
  std::vector<SplitSignature> rules;
  for (int8_t i = 0; i < count; ++i) {
    SplitSignature rule{{i}, {i}};
    rule.inputs.resize(static_cast<size_t>(c.num_inputs()),
                       SplitSignature::kWhole);
    rules.push_back(std::move(rule));
  }
  return rules;
}

// Two sweeps over the array.
Cost cost_norm(const InferContext& c) {
  const double n = static_cast<double>(c.shape(0).num_elements());
  return {8 * n, 3 * n * static_cast<double>(size_of(c.dtype(0)))};
}

// Means over pixels [n, 1..., c] -> means over pixels and group, repeated for
// each channel of the group.
Tensor over_groups(const Tensor& v, int64_t groups) {
  const int64_t channels = last_of(v.shape());
  if (groups == channels) return v;
  // An empty batch leaves reshape nothing to find a -1 from.
  const int64_t n = v.shape()[0];
  const int64_t batch = n < 0 ? kUnknownDim : n;
  const int64_t size = channels / groups;
  const Tensor split = reshape(v, {batch, groups, size}, {});
  const Tensor mean =
      math::reduce_mean(split, {.axis = Sizes{2}, .keepdims = true}, {});
  Shape back = v.shape();
  back[0] = batch;
  return reshape(tile(mean, {1, 1, size}, {}), back, {});
}

Tensors decompose_group_norm(std::span<const Tensor> in, const OpDef& op,
                             const Attrs* attrs) {
  const Tensor x = widened(in[0]), scale = in[1], offset = in[2];
  const int64_t groups = op.attr<int64_t>(attrs, "num_groups");
  if (last_of(x.shape()) < 0) {
    throw errors::InvalidArgument(
        fmt::format("GroupNorm: x is {}{}; expected a known number of channels",
                    x.shape().str(), where_text()));
  }
  Sizes pixels;
  for (int i = 1; i + 1 < x.rank(); ++i) pixels.push_back(i);
  const math::ReduceOptions over{.axis = pixels, .keepdims = true};
  const auto mean_of = [&](const Tensor& t) {
    return over_groups(pixels.empty() ? t : math::reduce_mean(t, over, {}),
                       groups);
  };
  const Tensor centred = x - mean_of(x);
  const Tensor variance = mean_of(math::square(centred, {}));
  const Tensor r =
      math::rsqrt(variance + op.attr<double>(attrs, "epsilon"), {});
  return {rounded_like(centred * (r * scale) + offset, in[0])};
}

Tensors decompose_rms_norm(std::span<const Tensor> in, const OpDef& op,
                           const Attrs* attrs) {
  const Tensor x = widened(in[0]);
  const Tensor mean = math::reduce_mean(
      math::square(x, {}), {.axis = Sizes{-1}, .keepdims = true}, {});
  const Tensor r = math::rsqrt(mean + op.attr<double>(attrs, "epsilon"), {});
  return {rounded_like(x * r * in[1], in[0])};
}

// Which channels are near which: [c, c] of 0 and 1.
Tensor near_channels(int64_t channels, int64_t radius, DType dtype) {
  const auto n = static_cast<size_t>(channels);
  std::vector<double> band(n * n);
  for (int64_t i = 0; i < channels; ++i) {
    for (int64_t j = 0; j < channels; ++j) {
      band[i * channels + j] = (i > j ? i - j : j - i) <= radius;
    }
  }
  const Tensor t = constant(band, {channels, channels});
  return dtype == float64 ? t : math::cast(t, dtype, {});
}

Tensors decompose_lrn(std::span<const Tensor> in, const OpDef& op,
                      const Attrs* attrs) {
  const Tensor x = widened(in[0]);
  const int64_t channels = last_of(x.shape());
  if (channels < 0) {
    throw errors::InvalidArgument(
        fmt::format("LRN: input is {}{}; expected a known number of channels",
                    x.shape().str(), where_text()));
  }
  const Tensor band = near_channels(
      channels, op.attr<int64_t>(attrs, "depth_radius"), x.dtype());
  const Tensor sum = matmul(math::square(x, {}), band, {}, {});
  const Tensor base =
      sum * op.attr<double>(attrs, "alpha") + op.attr<double>(attrs, "bias");
  const Tensor power = scalar_like(x, -op.attr<double>(attrs, "beta"));
  return {rounded_like(x * math::pow(base, power, {}), in[0])};
}

}  // namespace

namespace nn {

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale,
                  const Tensor& offset, double epsilon, Site site) {
  set_site(site);
  const AttrsRef attrs({{"num_groups", groups}, {"epsilon", epsilon}});
  const Tensor k = parameter_for(x, scale), b = parameter_for(x, offset);
  return call1(op_of<"GroupNorm">(), {&x, &k, &b}, attrs.get());
}

Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                     double epsilon, Site site) {
  set_site(site);
  const int64_t channels = x.rank() > 0 ? last_of(x.shape()) : kUnknownDim;
  if (channels < 1) {
    throw errors::InvalidArgument(
        fmt::format("instance_norm: x is {}{}; expected a known number of "
                    "channels, at least 1",
                    x.shape().str(), where_text()));
  }
  return group_norm(x, channels, scale, offset, epsilon, site);
}

Tensor rms_norm(const Tensor& x, const Tensor& scale, double epsilon,
                Site site) {
  set_site(site);
  return call1(op_of<"RMSNorm">(), x, parameter_for(x, scale),
               AttrsRef({{"epsilon", epsilon}}).get());
}

Tensor local_response_normalization(const Tensor& x, const LrnOptions& options,
                                    Site site) {
  set_site(site);
  const AttrsRef attrs({{"depth_radius", options.depth_radius},
                        {"bias", options.bias},
                        {"alpha", options.alpha},
                        {"beta", options.beta}});
  return call1(op_of<"LRN">(), x, attrs.get());
}

}  // namespace nn

void register_channel_norm_ops(OpRegistry& r) {
  r.op("GroupNorm")
      .free_input("x", kRealFloats)
      .input("scale", kFloatingTypes)
      .input("offset", kFloatingTypes)
      .output("y")
      .required_attr("num_groups", int64_t{0})
      .attr("epsilon", 0.001)
      .infer(&infer_group_norm)
      .cost(&cost_norm)
      .split([](const InferContext& c) { return split_leading(c, 1); })
      .decompose(&decompose_group_norm)
      .doc("Per example and group of channels of x [n, ..., c].");
  r.op("RMSNorm")
      .free_input("x", kRealFloats)
      .input("scale", kFloatingTypes)
      .output("y")
      .attr("epsilon", 1e-6)
      .infer([](InferContext& c) {
        infer_channel_norm(c, 1, "[..., c]");
        check_epsilon(c);
      })
      .cost(&cost_norm)
      .split([](const InferContext& c) {
        return split_leading(c, c.shape(0).rank() - 1);
      })
      .decompose(&decompose_rms_norm)
      .doc("x / sqrt(mean(x^2) + epsilon) * scale over the last axis.");
  r.op("LRN")
      .input("input", kRealFloats)
      .output("output")
      .attr("depth_radius", int64_t{5})
      .attr("bias", 1.0)
      .attr("alpha", 1.0)
      .attr("beta", 0.5)
      .infer([](InferContext& c) {
        infer_channel_norm(c, 1, "[..., c]");
        if (c.attr<int64_t>("depth_radius") >= 0) return;
        c.fail(fmt::format("depth_radius is {}; expected 0 or more",
                           c.attr<int64_t>("depth_radius")));
      })
      .cost(&cost_norm)
      .split([](const InferContext& c) {
        return split_leading(c, c.shape(0).rank() - 1);
      })
      .decompose(&decompose_lrn)
      .doc("x / (bias + alpha * sum of near channels' x^2)^beta.");
}

}  // namespace berth
