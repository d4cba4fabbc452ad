#include "op/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "berth/errors.h"
#include "op/device_scope.h"

namespace berth {

namespace {

// Larger ones could overflow the arithmetic below.
constexpr int64_t kMaxExtent = int64_t{1} << 30;

std::array<int64_t, 2> spatial(const OpDef& op, const Attrs* attrs,
                               const char* name) {
  const auto& v = op.attr<std::vector<int64_t>>(attrs, name);
  bool good = v.size() == 4 && v[0] == 1 && v[3] == 1;
  for (size_t i = 1; good && i < 3; ++i) good = v[i] >= 1 && v[i] <= kMaxExtent;
  if (!good) {
    throw errors::InvalidArgument(fmt::format(
        "{}: {} is [{}]{}; expected [1, h, w, 1] with h, w from 1 to {}",
        op.name(), name, fmt::join(v, ", "), where_text(), kMaxExtent));
  }
  return {v[1], v[2]};
}

// Pixels around one axis; both 0 for VALID.
struct Padding {
  bool same = false;
  int64_t before = 0, after = 0;
};

Padding padding_of(const OpDef& op, const Attrs* attrs) {
  const auto& padding = op.attr<std::string>(attrs, "padding");
  if (padding == "SAME") return {.same = true};
  if (padding == "VALID") return {};
  throw errors::InvalidArgument(
      fmt::format("{}: padding is \"{}\"{}; expected \"SAME\" or \"VALID\"",
                  op.name(), padding, where_text()));
}

// The padding of height and width for ops that know EXPLICIT too.
std::array<Padding, 2> paddings_of(const OpDef& op, const Attrs* attrs) {
  if (op.attr<std::string>(attrs, "padding") != "EXPLICIT") {
    const Padding p = padding_of(op, attrs);
    return {p, p};
  }
  const auto& v = op.attr<std::vector<int64_t>>(attrs, "explicit_paddings");
  bool good = v.size() == 8;
  for (size_t i = 0; good && i < 8; ++i) {
    good = v[i] >= 0 && v[i] <= (i < 2 || i > 5 ? 0 : kMaxExtent);
  }
  if (!good) {
    throw errors::InvalidArgument(fmt::format(
        "{}: explicit_paddings is [{}]{}; expected [0, 0, top, bottom, left, "
        "right, 0, 0] with numbers from 0 to {}",
        op.name(), fmt::join(v, ", "), where_text(), kMaxExtent));
  }
  return {Padding{false, v[2], v[3]}, Padding{false, v[4], v[5]}};
}

WindowAxis make_axis(const OpDef& op, int64_t in, int64_t window,
                     int64_t stride, int64_t dilation, const Padding& pad) {
  WindowAxis a{in, window, stride, dilation, kUnknownDim, pad.before};
  if (in >= 0 && (in > kMaxExtent || window > kMaxExtent)) {
    throw errors::InvalidArgument(
        fmt::format("{}: image of {} and window of {} pixels{}; expected at "
                    "most {}",
                    op.name(), in, window, where_text(), kMaxExtent));
  }
  if (pad.same) {
    // One output pixel per stride, whatever the window.
    if (in < 0) {
      a.out = stride == 1 ? in : kUnknownDim;
      return a;
    }
    a.out = in == 0 ? 0 : (in - 1) / stride + 1;
    if (window < 0) return a;
    const int64_t extent = (window - 1) * dilation + 1;
    a.pad = std::max<int64_t>((a.out - 1) * stride + extent - in, 0) / 2;
    return a;
  }
  if (in < 0 || window < 0) return a;
  const int64_t extent = (window - 1) * dilation + 1;
  const int64_t padded = in + pad.before + pad.after;
  if (window == 0 || padded < extent) {
    throw errors::InvalidArgument(fmt::format(
        "{}: a window of {} pixels in an image of {}{}; expected at least 1 "
        "and no more than the image: use padding \"SAME\"",
        op.name(), window == 0 ? 0 : extent, padded, where_text()));
  }
  a.out = (padded - extent) / stride + 1;
  return a;
}

}  // namespace

WindowAxes conv_windows(const OpDef& op, const Attrs* attrs, const Shape& image,
                        const Shape& filter) {
  const auto strides = spatial(op, attrs, "strides");
  const auto dilations = spatial(op, attrs, "dilations");
  const auto pads = paddings_of(op, attrs);
  return {
      make_axis(op, image[1], filter[0], strides[0], dilations[0], pads[0]),
      make_axis(op, image[2], filter[1], strides[1], dilations[1], pads[1])};
}

int64_t conv_groups(const OpDef& op, const Attrs* attrs, const Shape& image,
                    const Shape& filter) {
  const int64_t asked = op.attr<int64_t>(attrs, "groups");
  if (asked != 0) return asked;
  const int64_t all = image[3], each = filter[2];
  if (all < 0 || each < 0) return kUnknownDim;
  return each > 0 && all > 0 && all % each == 0 ? all / each : 1;
}

WindowAxes pool_windows(const OpDef& op, const Attrs* attrs,
                        const Shape& image) {
  const auto ksize = spatial(op, attrs, "ksize");
  const auto strides = spatial(op, attrs, "strides");
  const Padding pad = padding_of(op, attrs);
  return {make_axis(op, image[1], ksize[0], strides[0], 1, pad),
          make_axis(op, image[2], ksize[1], strides[1], 1, pad)};
}

std::vector<int64_t> nhwc_list(const std::vector<int64_t>& v) {
  if (v.size() == 1) return {1, v[0], v[0], 1};
  if (v.size() == 2) return {1, v[0], v[1], 1};
  return v;
}

}  // namespace berth
