// Volumes as images: the planes that meet a filter become channels of one
// image, or images of one batch.

#include "berth/ops/conv3d.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::nn {

namespace {

using Triple = std::vector<int64_t>;  // depth, height, width

bool depth_first_channels(const std::string& format) {
  if (format == "NDHWC") return false;
  if (format == "NCDHW") return true;
  throw errors::InvalidArgument(
      fmt::format("data_format is \"{}\"{}; expected \"NDHWC\" or \"NCDHW\"",
                  format, where_text()));
}

Triple triple(const char* what, const std::vector<int64_t>& v, bool first) {
  Triple t;
  if (v.size() == 1) t = {v[0], v[0], v[0]};
  if (v.size() == 3) t = v;
  if (v.size() == 5 && v[0] == 1 && v[first ? 1 : 4] == 1) {
    t.assign(v.begin() + (first ? 2 : 1), v.begin() + (first ? 5 : 4));
  }
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int64_t x : t) {
    if (x < 1 || x > kMost) t.clear();
    if (t.empty()) break;
  }
  if (!t.empty()) return t;
  throw errors::InvalidArgument(
      fmt::format("{} is [{}]{}; expected one, three or five numbers, 1 or "
                  "more, those of batch and channels 1",
                  what, fmt::join(v, ", "), where_text()));
}

void check_volume(const char* what, const Tensor& x, int known_from) {
  bool good = x.rank() == 5;
  for (int i = known_from; good && i < 5; ++i) good = x.shape()[i] >= 0;
  if (good) return;
  throw errors::InvalidArgument(
      fmt::format("{} is {}{}; expected five axes, all but the batch known",
                  what, x.shape().str(), where_text()));
}

// Calls fn with `x` as [n, d, h, w, c] and puts the result back.
template <class Fn>
Tensor channels_behind(const Tensor& x, bool first, Site site, const Fn& fn) {
  if (x.rank() != 5) check_volume("the volume", x, 0);
  const Tensor last = first ? transpose(x, {0, 2, 3, 4, 1}, site) : x;
  check_volume("the volume", last, 1);
  const Tensor y = fn(last);
  return first ? transpose(y, {0, 4, 1, 2, 3}, site) : y;
}

// What goes before and after an axis so that windows cover it.
struct Pads {
  int64_t before = 0, behind = 0;
};
Pads pads_of(const std::string& padding, int64_t length, int64_t extent,
             int64_t stride) {
  if (padding == "VALID") return {};
  if (padding != "SAME") {
    throw errors::InvalidArgument(
        fmt::format("padding is \"{}\"{}; expected \"SAME\" or \"VALID\"",
                    padding, where_text()));
  }
  const int64_t out = (length + stride - 1) / stride;
  const int64_t all =
      std::max<int64_t>((out - 1) * stride + extent - length, 0);
  return {all / 2, all - all / 2};
}

// [n, d, h, w, c] -> [n * d, h, w, c].
Tensor as_planes(const Tensor& x, Site site) {
  const Shape& s = x.shape();
  const int64_t n = s[0] < 0 ? kUnknownDim : s[0] * s[1];
  return reshape(x, {n, s[2], s[3], s[4]}, site);
}
// [n * d, h, w, c] -> [n, d, h, w, c].
Tensor as_volume(const Tensor& x, int64_t n, int64_t d, Site site) {
  const Shape& s = x.shape();
  return reshape(x, {n < 0 ? kUnknownDim : n, d, s[1], s[2], s[3]}, site);
}

// The planes that meet each plane of the filter, side by side as channels, in
// the order (group, plane, channel): [n * od, h, w, kd * c].
Tensor met_planes(const Tensor& x, int64_t planes, int64_t stride,
                  int64_t dilation, int64_t out, int64_t groups, Site site) {
  if (planes == 1 && stride == 1) return as_planes(x, site);
  const Shape& s = x.shape();
  Tensors taps;
  for (int64_t k = 0; k < planes; ++k) {
    const int64_t at = k * dilation;
    const Tensor tap = strided_slice(x, {0, at, 0, 0, 0},
                                     {0, at + (out - 1) * stride + 1, 0, 0, 0},
                                     {.strides = {1, stride, 1, 1, 1},
                                      .begin_mask = 0b11101,
                                      .end_mask = 0b11101},
                                     site);
    const Tensor plane = as_planes(tap, site);
    taps.push_back(groups == 1 ? plane
                               : reshape(plane,
                                         {plane.shape()[0], s[2], s[3], groups,
                                          s[4] / groups},
                                         site));
  }
  if (groups == 1) return concat(taps, 3, site);
  const Tensor all = concat(taps, 4, site);
  return reshape(all, {all.shape()[0], s[2], s[3], planes * s[4]}, site);
}

// Adds up windows of `planes` that begin `stride` apart: parts[k] [n, d, m]
// goes to the planes k * dilation + i * stride.
Tensor overlaid(const Tensors& parts, int64_t d, int64_t m, int64_t stride,
                int64_t dilation, Site site) {
  const int64_t last = static_cast<int64_t>(parts.size() - 1) * dilation;
  Tensors apart;
  for (size_t k = 0; k < parts.size(); ++k) {
    Tensor p = parts[k];
    if (stride > 1) {
      p = pad(expand_dims(p, 2, site), {0, 0, 0, 0, 0, stride - 1, 0, 0}, {},
              site);
      const int64_t n = p.shape()[0];
      p = reshape(p, {n < 0 ? kUnknownDim : n, d * stride, m}, site);
    }
    const int64_t at = static_cast<int64_t>(k) * dilation;
    apart.push_back(pad(p, {0, 0, at, last - at, 0, 0}, {}, site));
  }
  return apart.size() == 1 ? apart[0] : math::add_n(apart, site);
}

Tensor pool3d(bool max, const Tensor& input, const Pool3DOptions& o,
              Site site) {
  set_site(site);
  const bool first = depth_first_channels(o.data_format);
  const Triple size = triple("ksize", o.ksize, first);
  const Triple stride =
      o.strides.empty() ? size : triple("strides", o.strides, first);
  const auto pool = max ? &max_pool2d : &avg_pool2d;
  return channels_behind(input, first, site, [&](const Tensor& x) {
    const int64_t n = x.shape()[0], d = x.shape()[1], c = x.shape()[4];
    // A mean over a box is a mean of means; a largest one likewise.
    const Tensor flat = pool(as_planes(x, site),
                             {.ksize = {size[1], size[2]},
                              .strides = {stride[1], stride[2]},
                              .padding = o.padding},
                             site);
    const int64_t h = flat.shape()[1], w = flat.shape()[2];
    const int64_t known_n = n < 0 ? kUnknownDim : n;
    const Tensor deep = pool(reshape(flat, {known_n, d, h * w, c}, site),
                             {.ksize = {size[0], 1},
                              .strides = {stride[0], 1},
                              .padding = o.padding},
                             site);
    return reshape(deep, {known_n, deep.shape()[1], h, w, c}, site);
  });
}

}  // namespace

Tensor conv3d(const Tensor& input, const Tensor& filters,
              const Conv3DOptions& o, Site site) {
  set_site(site);
  const bool first = depth_first_channels(o.data_format);
  const Triple stride = triple("strides", o.strides, first);
  const Triple dilation = triple("dilations", o.dilations, first);
  check_volume("conv3d: filters", filters, 0);
  return channels_behind(input, first, site, [&](const Tensor& x) {
    const Shape& f = filters.shape();
    const int64_t n = x.shape()[0], d = x.shape()[1], c = x.shape()[4];
    if (f[3] < 1 || c % f[3] != 0 || f[4] % (c / f[3]) != 0) {
      throw errors::InvalidArgument(fmt::format(
          "conv3d: input is {}, filters {}{}; expected channels that divide "
          "into groups",
          x.shape().str(), f.str(), where_text()));
    }
    const int64_t extent = (f[0] - 1) * dilation[0] + 1;
    const Pads pads = pads_of(o.padding, d, extent, stride[0]);
    const int64_t deep = d + pads.before + pads.behind;
    if (f[0] < 1 || deep < extent) {
      throw errors::InvalidArgument(fmt::format(
          "conv3d: input is {}, filters {}{}; expected a depth of at least "
          "that of the filters",
          x.shape().str(), f.str(), where_text()));
    }
    const int64_t out = (deep - extent) / stride[0] + 1;
    Tensor padded = x;
    if (deep != d) {
      padded =
          pad(x, {0, 0, pads.before, pads.behind, 0, 0, 0, 0, 0, 0}, {}, site);
    }
    const Tensor planes =
        met_planes(padded, f[0], stride[0], dilation[0], out, c / f[3], site);
    const Tensor kernel = reshape(transpose(filters, {1, 2, 0, 3, 4}, site),
                                  {f[1], f[2], f[0] * f[3], f[4]}, site);
    const Tensor y = conv2d(planes, kernel,
                            {.strides = {stride[1], stride[2]},
                             .padding = o.padding,
                             .dilations = {dilation[1], dilation[2]}},
                            site);
    return as_volume(y, n, out, site);
  });
}

Tensor conv3d_transpose(const Tensor& input, const Tensor& filters,
                        const Conv3DOptions& o, Site site) {
  set_site(site);
  const bool first = depth_first_channels(o.data_format);
  const Triple stride = triple("strides", o.strides, first);
  const Triple dilation = triple("dilations", o.dilations, first);
  check_volume("conv3d_transpose: filters", filters, 0);
  return channels_behind(input, first, site, [&](const Tensor& x) {
    const Shape& f = filters.shape();
    const int64_t n = x.shape()[0], d = x.shape()[1];
    if (f[4] != x.shape()[4] || f[0] < 1 || d < 1) {
      throw errors::InvalidArgument(fmt::format(
          "conv3d_transpose: input is {}, filters {}{}; expected as many "
          "channels as the filters' last axis, and some depth",
          x.shape().str(), f.str(), where_text()));
    }
    const Tensor kernel = reshape(transpose(filters, {1, 2, 0, 3, 4}, site),
                                  {f[1], f[2], f[0] * f[3], f[4]}, site);
    const Tensor y = conv2d_transpose(as_planes(x, site), kernel, {},
                                      {.strides = {stride[1], stride[2]},
                                       .padding = o.padding,
                                       .dilations = {dilation[1], dilation[2]}},
                                      site);
    const int64_t h = y.shape()[1], w = y.shape()[2], m = h * w * f[3];
    const int64_t known_n = n < 0 ? kUnknownDim : n;
    Tensors parts;
    for (const Tensor& part : split(y, f[0], 3, site)) {
      parts.push_back(reshape(part, {known_n, d, m}, site));
    }
    const int64_t extent = (f[0] - 1) * dilation[0] + 1;
    const bool same = o.padding == "SAME";
    const int64_t out = same
                            ? d * stride[0]
                            : (d - 1) * stride[0] + std::max(extent, stride[0]);
    const int64_t cut = pads_of(o.padding, out, extent, stride[0]).before;
    const Tensor all = overlaid(parts, d, m, stride[0], dilation[0], site);
    return reshape(slice(all, {0, cut, 0}, {-1, out, -1}, site),
                   {known_n, out, h, w, f[3]}, site);
  });
}

Tensor max_pool3d(const Tensor& input, const Pool3DOptions& options,
                  Site site) {
  return pool3d(true, input, options, site);
}
Tensor avg_pool3d(const Tensor& input, const Pool3DOptions& options,
                  Site site) {
  return pool3d(false, input, options, site);
}

}  // namespace berth::nn
