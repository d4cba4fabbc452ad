// Two-dimensional convolution and its two gradients.
//
// The gradients take height and width of what they compute from an attribute;
// batch and channels come from the operands, so that a part of a batch needs no
// other attributes. Where height or width is not known in a trace, a tensor of
// that shape is a third operand instead; only its shape is read.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "berth/ops/nn.h"
#include "op/window.h"
#include "ops/families.h"
#include "ops/op_call.h"

namespace berth {

namespace {

using Sizes = std::vector<int64_t>;

const OpDef& conv_op() {
  static const OpDef& op = op_named("Conv2D");
  return op;
}

// The attributes that all three have, for a gradient rule.
std::vector<Attrs::Pair> conv_attrs(const GradCall& g) {
  return {{"strides", g.attr<Sizes>("strides")},
          {"dilations", g.attr<Sizes>("dilations")},
          {"padding", g.attr<std::string>("padding")}};
}

Tensor conv(const GradCall& g, const Tensor& x, const Tensor& filter) {
  return call1(conv_op(), x, filter, AttrsRef(conv_attrs(g)).get());
}

// The gradient of x, given that of conv(x, filter).
Tensor backprop_input(const GradCall& g, const Tensor& filter, const Tensor& dy,
                      const Tensor& x) {
  static const OpDef& op = op_named("Conv2DBackpropInput");
  auto attrs = conv_attrs(g);
  const Shape& s = x.shape();
  if (s[1] < 0 || s[2] < 0) {
    return call1(op, {&filter, &dy, &x}, AttrsRef(std::move(attrs)).get());
  }
  attrs.push_back({"input_sizes", Sizes{kUnknownDim, s[1], s[2], kUnknownDim}});
  return call1(op, filter, dy, AttrsRef(std::move(attrs)).get());
}

// The gradient of filter, given that of conv(x, filter).
Tensor backprop_filter(const GradCall& g, const Tensor& x, const Tensor& dy,
                       const Tensor& filter) {
  static const OpDef& op = op_named("Conv2DBackpropFilter");
  auto attrs = conv_attrs(g);
  const Shape& s = filter.shape();
  if (s[0] < 0 || s[1] < 0) {
    return call1(op, {&x, &dy, &filter}, AttrsRef(std::move(attrs)).get());
  }
  attrs.push_back(
      {"filter_sizes", Sizes{s[0], s[1], kUnknownDim, kUnknownDim}});
  return call1(op, x, dy, AttrsRef(std::move(attrs)).get());
}

// Returns [n, oh, ow, o] of an image and a filter, checking their channels.
Shape conv_shape(const InferContext& c, const Shape& x, const Shape& filter) {
  c.merge_dims(x[3], filter[2],
               fmt::format("channels differ: image is {}, filter is {}; "
                           "expected filter.shape[2] == {}",
                           x.str(), filter.str(), x[3]));
  const Windows w = conv_windows(c.op(), c.attrs(), x, filter);
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
          dim, shape[axis],
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
  const Shape x = wanted_shape(c, "input_sizes", "[n, h, w, c]",
                               {{0, c.shape(1)[0]}, {3, c.shape(0)[2]}});
  check_backprop(c, x, c.shape(0));
  c.set_output(0, c.dtype(0), x);
}

void infer_backprop_filter(InferContext& c) {
  c.expect_rank(0, 4, "[n, h, w, c]");
  c.expect_rank(1, 4, "[n, oh, ow, o]");
  const Shape filter = wanted_shape(c, "filter_sizes", "[kh, kw, c, o]",
                                    {{2, c.shape(0)[3]}, {3, c.shape(1)[3]}});
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

// Signatures for image, filter and result cut along one axis each; the third
// operand of a gradient is cut like its result.
using Signatures = std::vector<SplitSignature>;
constexpr int8_t kWhole = SplitSignature::kWhole;
constexpr int8_t kPartial = SplitSignature::kPartialSum;

Signatures with_like(const InferContext& c, Signatures rules) {
  if (c.num_inputs() < 3) return rules;
  for (SplitSignature& r : rules) {
    const int8_t out = r.outputs[0];
    r.inputs.push_back(out == kPartial ? kWhole : out);
  }
  return rules;
}

}  // namespace

namespace nn {

Tensor conv2d(const Tensor& input, const Tensor& filters,
              const Conv2DOptions& options, Site site) {
  set_site(site);
  const AttrsRef attrs({{"strides", nhwc_list(options.strides)},
                        {"dilations", nhwc_list(options.dilations)},
                        {"padding", options.padding}});
  return call1(conv_op(), input, filters, attrs.get());
}

}  // namespace nn

void register_conv_ops(OpRegistry& r) {
  r.op("Conv2D")
      .input("input", kFloatingTypes)
      .input("filter", kFloatingTypes)
      .output("output")
      .required_attr("strides", Sizes{})
      .required_attr("padding", std::string())
      .attr("dilations", Sizes{1, 1, 1, 1})
      .infer(&infer_conv)
      .cost([](const InferContext& c) {
        return cost(c, c.output(0).shape, c.shape(1));
      })
      .split([](const InferContext&) {
        return Signatures{
            {{0, kWhole}, {0}}, {{kWhole, 3}, {3}}, {{3, 2}, {kPartial}}};
      })
      .gradient([](const GradCall& g) {
        return Tensors{
            g.needs(0) ? backprop_input(g, g.x(1), g.dy(), g.x(0)) : Tensor(),
            g.needs(1) ? backprop_filter(g, g.x(0), g.dy(), g.x(1)) : Tensor()};
      })
      .doc("Correlation of images NHWC with filters HWIO.");
  r.op("Conv2DBackpropInput")
      .input("filter", kFloatingTypes)
      .input("out_backprop", kFloatingTypes)
      .optional_input("input_like", kFloatingTypes)
      .output("output")
      .required_attr("strides", Sizes{})
      .required_attr("padding", std::string())
      .attr("dilations", Sizes{1, 1, 1, 1})
      .attr("input_sizes", Sizes{})
      .infer(&infer_backprop_input)
      .cost(
          [](const InferContext& c) { return cost(c, c.shape(1), c.shape(0)); })
      .split([](const InferContext& c) {
        return with_like(
            c, {{{kWhole, 0}, {0}}, {{2, kWhole}, {3}}, {{3, 3}, {kPartial}}});
      })
      .gradient([](const GradCall& g) {
        Tensors d(static_cast<size_t>(g.num_inputs()));
        if (g.needs(0)) d[0] = backprop_filter(g, g.dy(), g.x(1), g.x(0));
        if (g.needs(1)) d[1] = conv(g, g.dy(), g.x(0));
        return d;
      })
      .doc("The gradient of a convolution's image.");
  r.op("Conv2DBackpropFilter")
      .input("input", kFloatingTypes)
      .input("out_backprop", kFloatingTypes)
      .optional_input("filter_like", kFloatingTypes)
      .output("output")
      .required_attr("strides", Sizes{})
      .required_attr("padding", std::string())
      .attr("dilations", Sizes{1, 1, 1, 1})
      .attr("filter_sizes", Sizes{})
      .infer(&infer_backprop_filter)
      .cost([](const InferContext& c) {
        return cost(c, c.shape(1), c.output(0).shape);
      })
      .split([](const InferContext& c) {
        return with_like(
            c, {{{0, 0}, {kPartial}}, {{kWhole, 3}, {3}}, {{3, kWhole}, {2}}});
      })
      .gradient([](const GradCall& g) {
        Tensors d(static_cast<size_t>(g.num_inputs()));
        if (g.needs(0)) d[0] = backprop_input(g, g.dy(), g.x(1), g.x(0));
        if (g.needs(1)) d[1] = conv(g, g.x(0), g.dy());
        return d;
      })
      .doc("The gradient of a convolution's filter.");
}

}  // namespace berth
