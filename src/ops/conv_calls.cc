// The public functions of convolutions and pools: other layouts and numbers of
// axes become NHWC images.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "op/window.h"
#include "ops/named_call.h"

namespace berth::nn {

namespace {

using Sizes = std::vector<int64_t>;

// Whether channels come first; `last` is the name of the other layout.
bool channels_first(const std::string& format, const char* last,
                    const char* first) {
  if (format == last) return false;
  if (format == first) return true;
  throw errors::InvalidArgument(
      fmt::format("data_format is \"{}\"{}; expected \"{}\" or \"{}\"", format,
                  where_text(), last, first));
}

// The options as they are for NHWC.
Sizes last_list(const Sizes& v, bool first) {
  return nhwc_list(first && v.size() == 4 ? Sizes{v[0], v[2], v[3], v[1]} : v);
}
Sizes paddings_list(const Conv2DOptions& o, bool first) {
  const Sizes& v = o.explicit_paddings;
  if (v.size() == 4) return {0, 0, v[0], v[1], v[2], v[3], 0, 0};
  if (first && v.size() == 8) {
    return {v[0], v[1], v[4], v[5], v[6], v[7], v[2], v[3]};
  }
  return v;
}

// Calls fn with `x` in the layout channels-last, [n, ..., c]; both are put
// back in the result.
template <class Fn>
Tensor channels_last(const Tensor& x, bool first, Site site, Fn&& fn) {
  if (!first) return fn(x);
  if (x.rank() != 4) {
    throw errors::InvalidArgument(
        fmt::format("the image is {}{}; expected [n, c, h, w]", x.shape().str(),
                    where_text()));
  }
  return transpose(fn(transpose(x, {0, 2, 3, 1}, site)), {0, 3, 1, 2}, site);
}

// Attributes of a convolution of NHWC images. Zero paddings are left out, so
// that equal calls have equal attributes.
std::vector<Attrs::Pair> conv_attrs(const Conv2DOptions& o, bool first) {
  std::vector<Attrs::Pair> list{{"strides", last_list(o.strides, first)},
                                {"dilations", last_list(o.dilations, first)},
                                {"padding", o.padding}};
  if (o.padding == "EXPLICIT") {
    list.push_back({"explicit_paddings", paddings_list(o, first)});
  } else if (!o.explicit_paddings.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "explicit_paddings is [{}], padding is \"{}\"{}; expected padding "
        "\"EXPLICIT\" with it",
        fmt::join(o.explicit_paddings, ", "), o.padding, where_text()));
  }
  return list;
}

void add_groups(const Tensor& x, const Tensor& filters,
                std::vector<Attrs::Pair>* attrs) {
  if (x.rank() != 4 || filters.rank() != 4) return;
  const int64_t all = x.shape()[3], each = filters.shape()[2];
  if (all < 0 || each < 0) {
    attrs->push_back({"groups", int64_t{0}});  // shows when they are known
  } else if (each > 0 && all > each && all % each == 0) {
    attrs->push_back({"groups", all / each});
  }
}

Conv2DOptions as_2d(const Conv1DOptions& o) {
  Conv2DOptions image{.strides = {1, o.stride},
                      .padding = o.padding,
                      .dilations = {1, o.dilations}};
  if (!o.explicit_paddings.empty()) {
    image.explicit_paddings = {0, 0};
    image.explicit_paddings.insert(image.explicit_paddings.end(),
                                   o.explicit_paddings.begin(),
                                   o.explicit_paddings.end());
  }
  return image;
}

// Calls fn with a sequence as an image of one row, [n, 1, s, c].
template <class Fn>
Tensor as_image(const Tensor& x, const std::string& format, Site site,
                Fn&& fn) {
  const bool first = channels_first(format, "NWC", "NCW");
  if (x.rank() != 3) {
    throw errors::InvalidArgument(
        fmt::format("the sequence is {}{}; expected {}", x.shape().str(),
                    where_text(), first ? "[n, c, s]" : "[n, s, c]"));
  }
  const Tensor last = first ? transpose(x, {0, 2, 1}, site) : x;
  const Tensor y = squeeze(fn(expand_dims(last, 1, site)), {1}, site);
  return first ? transpose(y, {0, 2, 1}, site) : y;
}

// Length of one axis of a transposed convolution's result.
int64_t grown(const Attrs* attrs, const Tensor& x, const Tensor& filters,
              int axis) {
  static const OpDef& op = op_named("Conv2D");
  const size_t i = static_cast<size_t>(axis);
  const int64_t length = x.shape()[axis], window = filters.shape()[axis - 1];
  const int64_t stride = op.attr<Sizes>(attrs, "strides").at(i);
  const std::string& padding = op.attr<std::string>(attrs, "padding");
  const bool same = padding == "SAME";
  constexpr int64_t kMost = int64_t{1} << 30;
  if (length < 0 || length > kMost || (!same && window < 0) || window > kMost ||
      stride > kMost) {
    throw errors::InvalidArgument(fmt::format(
        "conv2d_transpose: input is {}, filters is {}{}; expected known "
        "height, width and window, or an output_shape",
        x.shape().str(), filters.shape().str(), where_text()));
  }
  if (same) return length * stride;
  const int64_t dilation = op.attr<Sizes>(attrs, "dilations").at(i);
  int64_t pads = 0;
  if (padding == "EXPLICIT") {
    const Sizes& p = op.attr<Sizes>(attrs, "explicit_paddings");
    if (p.size() == 8) pads = p[2 * i] + p[2 * i + 1];
  }
  const int64_t extent = (window - 1) * dilation + 1;
  const int64_t all = (length - 1) * stride + std::max(extent, stride);
  return std::max<int64_t>(all - pads, 0);
}

Tensor pool(const char* name, const Tensor& input, const PoolOptions& o,
            Site site) {
  set_site(site);
  const bool first = channels_first(o.data_format, "NHWC", "NCHW");
  const AttrsRef attrs(
      {{"ksize", last_list(o.ksize, first)},
       {"strides", last_list(o.strides.empty() ? o.ksize : o.strides, first)},
       {"padding", o.padding}});
  return channels_last(input, first, site, [&](const Tensor& x) {
    return call1(op_named(name), x, attrs.get());
  });
}

Tensor pool1d(const char* name, const Tensor& input, const Pool1DOptions& o,
              Site site) {
  set_site(site);
  return as_image(input, o.data_format, site, [&](const Tensor& x) {
    return pool(name, x,
                {.ksize = {1, o.ksize},
                 .strides = {1, o.strides ? o.strides : o.ksize},
                 .padding = o.padding},
                site);
  });
}

bool are_whole(const Tensor& a, const Tensor& b) {
  return a.dtype() == int32 && b.dtype() == int32;
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& filters,
              const Conv2DOptions& options, Site site) {
  if (are_whole(input, filters)) {
    return math::cast(conv2d(math::cast(input, float64, site),
                             math::cast(filters, float64, site), options, site),
                      int32, site);
  }
  set_site(site);
  const bool first = channels_first(options.data_format, "NHWC", "NCHW");
  std::vector<Attrs::Pair> attrs = conv_attrs(options, first);
  return channels_last(input, first, site, [&](const Tensor& x) {
    add_groups(x, filters, &attrs);
    return call1(op_of<"Conv2D">(), x, filters,
                 AttrsRef(std::move(attrs)).get());
  });
}

Tensor conv2d_transpose(const Tensor& input, const Tensor& filters,
                        const Sizes& output_shape, const Conv2DOptions& options,
                        Site site) {
  if (are_whole(input, filters)) {
    return math::cast(conv2d_transpose(math::cast(input, float64, site),
                                       math::cast(filters, float64, site),
                                       output_shape, options, site),
                      int32, site);
  }
  set_site(site);
  const bool first = channels_first(options.data_format, "NHWC", "NCHW");
  std::vector<Attrs::Pair> attrs = conv_attrs(options, first);
  if (input.rank() != 4 || filters.rank() != 4 ||
      (!output_shape.empty() && output_shape.size() != 4)) {
    throw errors::InvalidArgument(fmt::format(
        "conv2d_transpose: input is {}, filters is {}, output_shape is "
        "[{}]{}; expected four dimensions of each",
        input.shape().str(), filters.shape().str(),
        fmt::join(output_shape, ", "), where_text()));
  }
  return channels_last(input, first, site, [&](const Tensor& x) {
    Sizes sizes = output_shape;
    if (sizes.empty()) {
      const AttrsRef forward{std::vector<Attrs::Pair>(attrs)};
      sizes = {kUnknownDim, grown(forward.get(), x, filters, 1),
               grown(forward.get(), x, filters, 2), kUnknownDim};
    } else if (first) {
      sizes = {sizes[0], sizes[2], sizes[3], sizes[1]};
    }
    attrs.push_back({"input_sizes", sizes});
    return call1(op_of<"Conv2DBackpropInput">(), filters, x,
                 AttrsRef(std::move(attrs)).get());
  });
}

Tensor depthwise_conv2d(const Tensor& input, const Tensor& filter,
                        const Conv2DOptions& options, Site site) {
  set_site(site);
  const bool first = channels_first(options.data_format, "NHWC", "NCHW");
  const AttrsRef attrs(conv_attrs(options, first));
  return channels_last(input, first, site, [&](const Tensor& x) {
    return call1(op_of<"DepthwiseConv2dNative">(), x, filter, attrs.get());
  });
}

Tensor separable_conv2d(const Tensor& input, const Tensor& depthwise_filter,
                        const Tensor& pointwise_filter,
                        const Conv2DOptions& options, Site site) {
  const Tensor y = depthwise_conv2d(input, depthwise_filter, options, site);
  return conv2d(y, pointwise_filter, {.data_format = options.data_format},
                site);
}

Tensor conv1d(const Tensor& input, const Tensor& filters,
              const Conv1DOptions& options, Site site) {
  set_site(site);
  return as_image(input, options.data_format, site, [&](const Tensor& x) {
    return conv2d(x, expand_dims(filters, 0, site), as_2d(options), site);
  });
}

Tensor conv1d_transpose(const Tensor& input, const Tensor& filters,
                        const Sizes& output_shape, const Conv1DOptions& options,
                        Site site) {
  set_site(site);
  Sizes sizes = output_shape;
  if (sizes.size() == 3) {
    if (options.data_format == "NCW") std::swap(sizes[1], sizes[2]);
    sizes.insert(sizes.begin() + 1, 1);
  }
  return as_image(input, options.data_format, site, [&](const Tensor& x) {
    return conv2d_transpose(x, expand_dims(filters, 0, site), sizes,
                            as_2d(options), site);
  });
}

Tensor max_pool2d(const Tensor& input, const PoolOptions& options, Site site) {
  return pool("MaxPool", input, options, site);
}
Tensor avg_pool2d(const Tensor& input, const PoolOptions& options, Site site) {
  return pool("AvgPool", input, options, site);
}
Tensor max_pool1d(const Tensor& input, const Pool1DOptions& options,
                  Site site) {
  return pool1d("MaxPool", input, options, site);
}
Tensor avg_pool1d(const Tensor& input, const Pool1DOptions& options,
                  Site site) {
  return pool1d("AvgPool", input, options, site);
}

std::pair<Tensor, Tensor> max_pool_with_argmax(const Tensor& input,
                                               const PoolOptions& options,
                                               Site site) {
  set_site(site);
  const Sizes& strides =
      options.strides.empty() ? options.ksize : options.strides;
  if (options.data_format != "NHWC") {
    throw errors::InvalidArgument(fmt::format(
        "max_pool_with_argmax: data_format is \"{}\"{}; expected \"NHWC\"",
        options.data_format, where_text()));
  }
  const AttrsRef attrs({{"ksize", nhwc_list(options.ksize)},
                        {"strides", nhwc_list(strides)},
                        {"padding", options.padding}});
  Tensors y = call_many(op_of<"MaxPoolWithArgmax">(), {&input}, attrs.get());
  return {std::move(y[0]), std::move(y[1])};
}

}  // namespace berth::nn
