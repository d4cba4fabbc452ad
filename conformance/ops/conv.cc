// Convolution with its two gradients, in groups, and of each channel.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

struct Conv {
  const char* label;
  Shape image, filter, result;
  std::string padding = "SAME";
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t groups = 1;
  Ints pads = {};  // top, bottom, left, right of padding EXPLICIT
};

Case& with(Case& c, const Conv& v) {
  c.close_to(1e-5, 1e-4)
      .attr("strides", Ints{1, v.stride, v.stride, 1})
      .attr("padding", v.padding);
  if (v.dilation != 1) {
    c.attr("dilations", Ints{1, v.dilation, v.dilation, 1});
  }
  if (v.groups != 1) c.attr("groups", v.groups);
  if (!v.pads.empty()) {
    c.attr("explicit_paddings",
           Ints{0, 0, v.pads[0], v.pads[1], v.pads[2], v.pads[3], 0, 0});
  }
  return c;
}

// Each geometry is tried on the convolution and on both gradients; sizes by
// attribute with open batch and channels, all of them, and by operand.
void add_conv(Cases& cases, const Conv& v, DTypeSet types = kFloatingTypes) {
  const auto only_shape = [](Shape s) {
    return Input(s).without_gradient("only its shape is read");
  };
  const std::string label =
      (types == kHalfTypes ? "halves_" : "") + std::string(v.label);
  const Shape &x = v.image, &f = v.filter;
  with(cases.add("Conv2D", label, {Input(x), Input(f)}), v).types(types);
  const char* op = "Conv2DBackpropInput";
  with(cases.add(op, label, {Input(f), Input(v.result)}), v)
      .types(types)
      .attr("input_sizes", Ints{-1, x[1], x[2], -1});
  with(cases.add(op, label + "_sizes", {Input(f), Input(v.result)}), v)
      .types(types)
      .attr("input_sizes", Ints(x.begin(), x.end()));
  with(cases.add(op, label + "_like",
                 {Input(f), Input(v.result), only_shape(x)}),
       v)
      .types(types);
  op = "Conv2DBackpropFilter";
  with(cases.add(op, label, {Input(x), Input(v.result)}), v)
      .types(types)
      .attr("filter_sizes", Ints{f[0], f[1], -1, -1});
  with(cases.add(op, label + "_sizes", {Input(x), Input(v.result)}), v)
      .types(types)
      .attr("filter_sizes", Ints(f.begin(), f.end()));
  with(cases.add(op, label + "_like",
                 {Input(x), Input(v.result), only_shape(f)}),
       v)
      .types(types);
}

void add_grouped(Cases& cases) {
  const auto groups = [](Conv v, int64_t n) {
    v.groups = n;
    return v;
  };
  add_conv(
      cases,
      groups({"groups_of_2", {2, 4, 5, 6}, {3, 3, 2, 9}, {2, 4, 5, 9}}, 3));
  add_conv(
      cases,
      groups(
          {"groups_of_1", {2, 5, 5, 4}, {3, 3, 1, 8}, {2, 3, 3, 8}, "VALID", 1},
          4));
  add_conv(cases, groups({"groups_stride_2",
                          {2, 5, 4, 4},
                          {2, 3, 2, 4},
                          {2, 3, 2, 4},
                          "SAME",
                          2},
                         2));
  add_conv(
      cases,
      groups({"groups_of_8", {2, 4, 4, 16}, {3, 3, 8, 16}, {2, 4, 4, 16}}, 2));
}

void add_explicit(Cases& cases) {
  const auto padded = [](Conv v, Ints pads) {
    v.padding = "EXPLICIT";
    v.pads = std::move(pads);
    return v;
  };
  add_conv(cases, padded({"explicit", {2, 4, 5, 2}, {3, 3, 2, 3}, {2, 5, 5, 3}},
                         {1, 2, 0, 2}));
  add_conv(cases,
           padded({"explicit_none", {2, 4, 5, 2}, {3, 3, 2, 3}, {2, 2, 3, 3}},
                  {0, 0, 0, 0}));
  // Some windows see nothing of the image.
  add_conv(cases,
           padded({"explicit_wide", {1, 3, 3, 2}, {2, 2, 2, 2}, {1, 8, 5, 2}},
                  {4, 2, 0, 3}));
  add_conv(cases, padded({"explicit_stride_2",
                          {2, 5, 4, 1},
                          {3, 3, 1, 2},
                          {2, 3, 3, 2},
                          "EXPLICIT",
                          2},
                         {1, 1, 1, 2}));
}

void add_depthwise(Cases& cases) {
  const auto add = [&](const Conv& v) {
    with(cases.add("DepthwiseConv2dNative", v.label,
                   {Input(v.image), Input(v.filter)}),
         v);
  };
  add({"one_each", {2, 5, 6, 3}, {3, 3, 3, 1}, {}});
  add({"two_each", {2, 5, 6, 3}, {3, 3, 3, 2}, {}, "VALID"});
  add({"stride_2", {2, 5, 5, 2}, {3, 3, 2, 1}, {}, "SAME", 2});
  add({"dilated", {2, 6, 6, 2}, {2, 3, 2, 1}, {}, "VALID", 1, 2});
  add({"one_channel", {2, 4, 4, 1}, {2, 2, 1, 3}, {}});
  add({"sixteen", {2, 4, 4, 16}, {3, 3, 16, 1}, {}});
  add({"no_images", {0, 4, 4, 2}, {3, 3, 2, 1}, {}});
  add({"no_channels", {2, 4, 4, 0}, {3, 3, 0, 1}, {}});
  with(cases.add("DepthwiseConv2dNative", "special",
                 {Input({1, 4, 4, 2}).special(), Input({2, 2, 2, 1})}),
       {"special", {}, {}, {}, "VALID"})
      .types(dtype_bit(float64));
}

void add_conv_halves(Cases& cases) {
  for (const Conv& v : std::vector<Conv>{
           {"same_3x3", {2, 5, 6, 2}, {3, 3, 2, 3}, {2, 5, 6, 3}},
           {"stride_2", {2, 5, 6, 2}, {3, 3, 2, 3}, {2, 3, 3, 3}, "SAME", 2},
           {"dilated", {2, 7, 7, 2}, {3, 3, 2, 2}, {2, 3, 3, 2}, "VALID", 1, 2},
           {"1x1", {2, 3, 3, 4}, {1, 1, 4, 5}, {2, 3, 3, 5}},
           {"groups",
            {2, 4, 4, 16},
            {3, 3, 8, 16},
            {2, 4, 4, 16},
            "SAME",
            1,
            1,
            2},
           {"each_channel",
            {2, 4, 4, 17},
            {3, 3, 1, 17},
            {2, 4, 4, 17},
            "SAME",
            1,
            1,
            17},
           {"wide_3x3", {2, 7, 8, 17}, {3, 3, 17, 18}, {2, 7, 8, 18}},
           {"no_images", {0, 4, 4, 2}, {3, 3, 2, 3}, {0, 4, 4, 3}}}) {
    add_conv(cases, v, kHalfTypes);
  }
  const Conv v{"halves", {}, {}, {}};
  with(cases.add("DepthwiseConv2dNative", v.label,
                 {Input({2, 5, 6, 3}), Input({3, 3, 3, 2})}),
       v)
      .types(kHalfTypes);
}

void add_conv_perf(Cases& cases) {
  const Conv v{
      "mnist_32", {64, 28, 28, 1}, {3, 3, 1, 32}, {64, 26, 26, 32}, "VALID"};
  const Conv w{
      "32_64", {64, 13, 13, 32}, {3, 3, 32, 64}, {64, 11, 11, 64}, "VALID"};
  for (const Conv& c : {v, w}) {
    const DTypeSet f32 = dtype_bit(float32);
    with(cases.add("Conv2D", c.label, {Input(c.image), Input(c.filter)}), c)
        .types(f32)
        .perf_only();
    with(cases.add("Conv2DBackpropInput", c.label,
                   {Input(c.filter), Input(c.result)}),
         c)
        .attr("input_sizes", Ints(c.image.begin(), c.image.end()))
        .types(f32)
        .perf_only();
    with(cases.add("Conv2DBackpropFilter", c.label,
                   {Input(c.image), Input(c.result)}),
         c)
        .attr("filter_sizes", Ints(c.filter.begin(), c.filter.end()))
        .types(f32)
        .perf_only();
  }
}

}  // namespace

void add_conv_cases(Cases& cases) {
  add_grouped(cases);
  add_explicit(cases);
  add_depthwise(cases);
  add_conv(cases, {"same_3x3", {2, 5, 6, 2}, {3, 3, 2, 3}, {2, 5, 6, 3}});
  add_conv(cases,
           {"valid_3x3", {2, 5, 6, 2}, {3, 3, 2, 3}, {2, 3, 4, 3}, "VALID"});
  add_conv(
      cases,
      {"same_stride_2", {2, 5, 6, 2}, {3, 3, 2, 3}, {2, 3, 3, 3}, "SAME", 2});
  add_conv(
      cases,
      {"valid_stride_2", {3, 6, 5, 1}, {3, 2, 1, 2}, {3, 2, 2, 2}, "VALID", 2});
  add_conv(
      cases,
      {"dilated", {2, 7, 7, 2}, {3, 3, 2, 2}, {2, 3, 3, 2}, "VALID", 1, 2});
  add_conv(cases, {"same_2x2", {2, 4, 4, 2}, {2, 2, 2, 3}, {2, 4, 4, 3}});
  add_conv(cases, {"1x1", {2, 3, 3, 4}, {1, 1, 4, 5}, {2, 3, 3, 5}});
  add_conv(cases, {"stride_3_of_1x1",
                   {2, 5, 5, 2},
                   {1, 1, 2, 2},
                   {2, 2, 2, 2},
                   "VALID",
                   3});
  // Channels and pixels enough for what fast backends keep for such shapes.
  add_conv(cases, {"wide_3x3", {2, 7, 8, 17}, {3, 3, 17, 18}, {2, 7, 8, 18}});
  add_conv(cases, {"no_images", {0, 4, 4, 2}, {3, 3, 2, 3}, {0, 4, 4, 3}});
  cases
      .add("Conv2D", "special",
           {Input({1, 4, 4, 1}).special(), Input({2, 2, 1, 2}).special()})
      .types(dtype_bit(float64))
      .attr("strides", Ints{1, 1, 1, 1})
      .attr("padding", std::string("VALID"));
  add_conv_perf(cases);
  add_conv_halves(cases);
}

}  // namespace berth::conformance
