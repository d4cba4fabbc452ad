// Two-dimensional convolution and its two gradients.
//
// The gradients take height and width of what they compute from an attribute;
// batch and channels come from the operands, so that a part of a batch needs no
// other attributes. Where height or width is not known in a trace, a tensor of
// that shape is a third operand instead; only its shape is read.
// The number of groups is an attribute; 0, for channels that are unknown in a
// trace: as many as they say once they are known. A depthwise convolution is
// one with a group per channel.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "op/device_scope.h"
#include "op/window.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

using Sizes = std::vector<int64_t>;

// More cannot be multiplied safely; no image has as many.
constexpr int64_t kMaxChannels = int64_t{1} << 31;

// The attributes that all three have, for a gradient rule.
std::vector<Attrs::Pair> conv_attrs(const GradCall& g) {
  return {{"strides", g.attr<Sizes>("strides")},
          {"dilations", g.attr<Sizes>("dilations")},
          {"padding", g.attr<std::string>("padding")},
          {"explicit_paddings", g.attr<Sizes>("explicit_paddings")},
          {"groups", g.attr<int64_t>("groups")}};
}

Tensor conv(const GradCall& g, const Tensor& x, const Tensor& filter) {
  return call1(op_of<"Conv2D">(), x, filter, AttrsRef(conv_attrs(g)).get());
}

// The gradient of x, given that of conv(x, filter).
Tensor backprop_input(const GradCall& g, const Tensor& filter, const Tensor& dy,
                      const Tensor& x) {
  static const OpDef& op = op_named("Conv2DBackpropInput");
  auto attrs = conv_attrs(g);
  const Shape& s = x.shape();
  const bool any_groups = g.attr<int64_t>("groups") == 0;
  if (s[1] < 0 || s[2] < 0 || (any_groups && s[3] < 0)) {
    return call1(op, {&filter, &dy, &x}, AttrsRef(std::move(attrs)).get());
  }
  attrs.push_back({"input_sizes", Sizes{kUnknownDim, s[1], s[2],
                                        any_groups ? s[3] : kUnknownDim}});
  return call1(op, filter, dy, AttrsRef(std::move(attrs)).get());
}

// The gradient of filter, given that of conv(x, filter).
Tensor backprop_filter(const GradCall& g, const Tensor& x, const Tensor& dy,
                       const Tensor& filter) {
  static const OpDef& op = op_named("Conv2DBackpropFilter");
  auto attrs = conv_attrs(g);
  const Shape& s = filter.shape();
  const bool any_groups = g.attr<int64_t>("groups") == 0;
  if (s[0] < 0 || s[1] < 0 || (any_groups && s[2] < 0)) {
    return call1(op, {&x, &dy, &filter}, AttrsRef(std::move(attrs)).get());
  }
  attrs.push_back(
      {"filter_sizes",
       Sizes{s[0], s[1], any_groups ? s[2] : kUnknownDim, kUnknownDim}});
  return call1(op, x, dy, AttrsRef(std::move(attrs)).get());
}

// The attribute; 0: as many as the channels say.
int64_t asked_groups(const InferContext& c) {
  const int64_t groups = c.attr<int64_t>("groups");
  if (groups >= 0) return groups;
  c.fail(fmt::format(
      "groups is {}; expected 1 or more, or 0: as the channels say", groups));
}

// Channels of an image whose filter sees `per_group` of them.
int64_t all_channels(int64_t groups, int64_t per_group) {
  if (groups == 1) return per_group;
  if (groups <= 0) return kUnknownDim;
  return per_group < 0 || per_group > kMaxChannels / groups
             ? kUnknownDim
             : per_group * groups;
}

// Channels of a filter for an image of `all`.
int64_t channels_per_group(int64_t groups, int64_t all) {
  if (groups == 1) return all;
  return groups <= 0 || all < 0 || all % groups != 0 ? kUnknownDim
                                                     : all / groups;
}

// Returns [n, oh, ow, o] of an image and a filter, checking their channels.
Shape conv_shape(const InferContext& c, const Shape& x, const Shape& filter) {
  asked_groups(c);
  const int64_t groups = conv_groups(c.op(), c.attrs(), x, filter);
  c.merge_dims(x[3], all_channels(groups, filter[2]),
               fmt::format("channels differ: image is {}, filter is {}; "
                           "expected filter.shape[2] == {}{}",
                           x.str(), filter.str(), x[3],
                           groups == 1 ? std::string(", or a divisor of it")
                                       : fmt::format(" / {} groups", groups)));
  if (groups > 0 && filter[3] >= 0 && filter[3] % groups != 0) {
    c.fail(
        fmt::format("filter is {}; expected filter.shape[3] to be a "
                    "multiple of the {} groups",
                    filter.str(), groups));
  }
  const WindowAxes w = conv_windows(c.op(), c.attrs(), x, filter);
  return {x[0], w.h.out, w.w.out, filter[3]};
}

void infer_conv(InferContext& c) {
  c.expect_rank(0, 4, "[n, h, w, c]");
  c.expect_rank(1, 4, "[kh, kw, c, o]");
  c.set_output(0, c.dtype(0), conv_shape(c, c.shape(0), c.shape(1)));
}

// The shape of the result: from operand 2 or, height and width, from the
// attribute `sizes`. `known` are (axis, dimension) pairs that the operands
// decide, whatever the attribute says: it may speak of the whole of which
// these are a part.
Shape wanted_shape(const InferContext& c, const char* sizes, const char* dims,
                   std::initializer_list<std::pair<int, int64_t>> known) {
  if (c.num_inputs() == 3) {
    c.expect_rank(2, 4, dims);
    Shape shape = c.shape(2);
    for (const auto& [axis, dim] : known) {
      shape[axis] = c.merge_dims(
          shape[axis], dim,
          fmt::format("{} is {}, but the other operands say shape[{}] == {}",
                      c.op().input(2).name, shape.str(), axis, dim));
    }
    return shape;
  }
  const Sizes& list = c.attr<Sizes>(sizes);
  Shape shape = list.size() == 4 ? Shape(list) : Shape{-1, -1, -1, -1};
  std::array<bool, 4> given = {};
  for (const auto& [axis, dim] : known) {
    given[axis] = true;
    if (dim >= 0 || shape[axis] < 0) shape[axis] = dim;
  }
  for (int i = 0; i < 4; ++i) {
    if (given[i] || shape[i] >= 0) continue;
    c.fail(fmt::format("{} is [{}]; expected {}", sizes, fmt::join(list, ", "),
                       dims));
  }
  return shape;
}

// The gradient of the output must have the output's shape.
void check_backprop(const InferContext& c, const Shape& x,
                    const Shape& filter) {
  const Shape want = conv_shape(c, x, filter);
  if (want.compatible_with(c.shape(1))) return;
  c.fail(fmt::format("out_backprop is {}, but image {} and filter {} give {}",
                     c.shape(1).str(), x.str(), filter.str(), want.str()));
}

void infer_backprop_input(InferContext& c) {
  c.expect_rank(0, 4, "[kh, kw, c, o]");
  c.expect_rank(1, 4, "[n, oh, ow, o]");
  const Shape x = wanted_shape(
      c, "input_sizes", "[n, h, w, c]",
      {{0, c.shape(1)[0]}, {3, all_channels(asked_groups(c), c.shape(0)[2])}});
  check_backprop(c, x, c.shape(0));
  c.set_output(0, c.dtype(0), x);
}

void infer_backprop_filter(InferContext& c) {
  c.expect_rank(0, 4, "[n, h, w, c]");
  c.expect_rank(1, 4, "[n, oh, ow, o]");
  const Shape filter =
      wanted_shape(c, "filter_sizes", "[kh, kw, c, o]",
                   {{2, channels_per_group(asked_groups(c), c.shape(0)[3])},
                    {3, c.shape(1)[3]}});
  check_backprop(c, c.shape(0), filter);
  c.set_output(0, c.dtype(0), filter);
}

// A multiplication and an addition per filter weight and output pixel.
Cost cost(const InferContext& c, const Shape& y, const Shape& filter) {
  double elements = static_cast<double>(c.output(0).shape.num_elements());
  for (int i = 0; i < 2; ++i) {
    elements += static_cast<double>(c.shape(i).num_elements());
  }
  const double taps = static_cast<double>(filter[0] * filter[1] * filter[2]);
  return {2 * static_cast<double>(y.num_elements()) * taps,
          elements * static_cast<double>(size_of(c.dtype(0)))};
}

// Signatures for image, filter and result split along one axis each; the third
// operand of a gradient is split like its result.
using Signatures = std::vector<SplitSignature>;
constexpr int8_t kWhole = SplitSignature::kWhole;
constexpr int8_t kPartial = SplitSignature::kPartialSum;

// The first rule, by images, is true of groups too.
Signatures with_like(const InferContext& c, Signatures rules) {
  if (c.attr<int64_t>("groups") != 1) rules.resize(1);
  if (c.num_inputs() < 3) return rules;
  for (SplitSignature& r : rules) {
    const int8_t out = r.outputs[0];
    r.inputs.push_back(out == kPartial ? kWhole : out);
  }
  return rules;
}

// What all ops of the family have.
void conv_family(OpBuilder& op, InferFn infer, CostFn cost, SplitFn split) {
  op.output("output")
      .required_attr("strides", Sizes{})
      .required_attr("padding", std::string())
      .attr("dilations", Sizes{1, 1, 1, 1})
      .attr("explicit_paddings", Sizes{})
      .attr("groups", int64_t{1})
      .infer(infer)
      .cost(cost)
      .split(split);
}

void register_conv(OpRegistry& r) {
  OpBuilder op = r.op("Conv2D");
  op.input("input", kRealFloats).input("filter", kRealFloats);
  conv_family(
      op, &infer_conv,
      [](const InferContext& c) {
        return cost(c, c.output(0).shape, c.shape(1));
      },
      [](const InferContext& c) {
        return with_like(
            c, {{{0, kWhole}, {0}}, {{kWhole, 3}, {3}}, {{3, 2}, {kPartial}}});
      });
  op.gradient([](const GradCall& g) {
      return Tensors{
          g.needs(0) ? backprop_input(g, g.x(1), g.dy(), g.x(0)) : Tensor(),
          g.needs(1) ? backprop_filter(g, g.x(0), g.dy(), g.x(1)) : Tensor()};
    }).doc("Correlation of images NHWC with filters HWIO.");
}

void register_backprop_input(OpRegistry& r) {
  OpBuilder op = r.op("Conv2DBackpropInput");
  op.input("filter", kRealFloats)
      .input("out_backprop", kRealFloats)
      .optional_input("input_like", kRealFloats)
      .attr("input_sizes", Sizes{});
  conv_family(
      op, &infer_backprop_input,
      [](const InferContext& c) { return cost(c, c.shape(1), c.shape(0)); },
      [](const InferContext& c) {
        return with_like(
            c, {{{kWhole, 0}, {0}}, {{2, kWhole}, {3}}, {{3, 3}, {kPartial}}});
      });
  op.gradient([](const GradCall& g) {
      Tensors d(static_cast<size_t>(g.num_inputs()));
      if (g.needs(0)) d[0] = backprop_filter(g, g.dy(), g.x(1), g.x(0));
      if (g.needs(1)) d[1] = conv(g, g.dy(), g.x(0));
      return d;
    }).doc("The gradient of a convolution's image.");
}

void register_backprop_filter(OpRegistry& r) {
  OpBuilder op = r.op("Conv2DBackpropFilter");
  op.input("input", kRealFloats)
      .input("out_backprop", kRealFloats)
      .optional_input("filter_like", kRealFloats)
      .attr("filter_sizes", Sizes{});
  conv_family(
      op, &infer_backprop_filter,
      [](const InferContext& c) {
        return cost(c, c.shape(1), c.output(0).shape);
      },
      [](const InferContext& c) {
        return with_like(
            c, {{{0, 0}, {kPartial}}, {{kWhole, 3}, {3}}, {{3, kWhole}, {2}}});
      });
  op.gradient([](const GradCall& g) {
      Tensors d(static_cast<size_t>(g.num_inputs()));
      if (g.needs(0)) d[0] = backprop_input(g, g.dy(), g.x(1), g.x(0));
      if (g.needs(1)) d[1] = conv(g, g.x(0), g.dy());
      return d;
    }).doc("The gradient of a convolution's filter.");
}

// [n, h, w, c] and [kh, kw, c, m] -> [n, oh, ow, c * m].
void infer_depthwise(InferContext& c) {
  c.expect_rank(0, 4, "[n, h, w, c]");
  c.expect_rank(1, 4, "[kh, kw, c, m]");
  const Shape &x = c.shape(0), &filter = c.shape(1);
  const int64_t channels = c.merge_dims(
      x[3], filter[2],
      fmt::format("channels differ: image is {}, filter is {}; expected "
                  "filter.shape[2] == {}",
                  x.str(), filter.str(), x[3]));
  const WindowAxes w = conv_windows(c.op(), c.attrs(), x, filter);
  const bool known = channels >= 0 && filter[3] >= 0 &&
                     channels <= kMaxChannels && filter[3] <= kMaxChannels;
  c.set_output(
      0, c.dtype(0),
      {x[0], w.h.out, w.w.out, known ? channels * filter[3] : kUnknownDim});
}

Tensors decompose_depthwise(std::span<const Tensor> in, const OpDef& op,
                            const Attrs* attrs) {
  const Shape &x = in[0].shape(), &f = in[1].shape();
  const int64_t channels = x[3] >= 0 ? x[3] : f[2];
  if (channels < 0 || f[0] < 0 || f[1] < 0) {
    throw errors::InvalidArgument(fmt::format(
        "{}: image is {}, filter is {}{}; expected known channels and window",
        op.name(), x.str(), f.str(), where_text()));
  }
  const int64_t outputs = f[3] < 0 ? kUnknownDim : channels * f[3];
  const Tensor filter =
      reshape(in[1], {f[0], f[1], channels > 0 ? 1 : 0, outputs}, {});
  const AttrsRef conv(
      {{"strides", op.attr<Sizes>(attrs, "strides")},
       {"dilations", op.attr<Sizes>(attrs, "dilations")},
       {"padding", op.attr<std::string>(attrs, "padding")},
       {"explicit_paddings", op.attr<Sizes>(attrs, "explicit_paddings")},
       {"groups", std::max<int64_t>(channels, 1)}});
  return {call1(op_of<"Conv2D">(), in[0], filter, conv.get())};
}

// Channels too, where each makes one: then all are split at the same borders.
Signatures split_depthwise(const InferContext& c) {
  Signatures rules{{{0, kWhole}, {0}}};
  if (c.shape(1)[3] == 1) rules.push_back({{3, 2}, {3}});
  return rules;
}

void register_depthwise(OpRegistry& r) {
  OpBuilder op = r.op("DepthwiseConv2dNative");
  op.input("input", kRealFloats)
      .input("filter", kRealFloats)
      .output("output")
      .required_attr("strides", Sizes{})
      .required_attr("padding", std::string())
      .attr("dilations", Sizes{1, 1, 1, 1})
      .attr("explicit_paddings", Sizes{})
      .infer(&infer_depthwise)
      .cost([](const InferContext& c) {
        const Shape& f = c.shape(1);
        return cost(c, c.output(0).shape, {f[0], f[1], 1, f[3]});
      })
      .split(&split_depthwise)
      .decompose(&decompose_depthwise)
      .doc("Each channel by filters of its own: a Conv2D of as many groups.");
}

}  // namespace

void register_conv_ops(OpRegistry& r) {
  register_conv(r);
  register_backprop_input(r);
  register_backprop_filter(r);
  register_depthwise(r);
}

}  // namespace berth
