// image::resize and resize_with_pad.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "berth/image.h"
#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "preprocess/image_util.h"
#include "preprocess/spans.h"
#include "tensor/tensor_impl.h"

namespace berth::image {

namespace {

constexpr int64_t kMostSide = int64_t{1} << 24;

struct Plan {
  ImageLayout from;
  Size size;
  Spans y, x;
  bool nearest = false;
};

void check_size(const char* function, Site site, Size size) {
  if (size.height >= 1 && size.width >= 1 && size.height <= kMostSide &&
      size.width <= kMostSide && size.height * size.width <= int64_t{1} << 32) {
    return;
  }
  refuse(function, site,
         fmt::format("the size is {} x {}; expected at least 1 x 1 and at most "
                     "2^32 pixels",
                     size.height, size.width));
}

// The largest size of the picture's proportions that fits.
Size fitting(const ImageLayout& l, Size size) {
  const double scale =
      std::min(static_cast<double>(size.height) / static_cast<double>(l.height),
               static_cast<double>(size.width) / static_cast<double>(l.width));
  const auto scaled = [&](int64_t n) {
    return std::max<int64_t>(1, std::llround(scale * static_cast<double>(n)));
  };
  return {std::min(scaled(l.height), size.height),
          std::min(scaled(l.width), size.width)};
}

Plan plan_of(const char* function, const ImageLayout& from, Size size,
             const ResizeOptions& o, Site site) {
  check_size(function, site, size);
  Plan p{.from = from, .size = size, .nearest = o.method == "nearest"};
  if (o.preserve_aspect_ratio) p.size = fitting(from, size);
  bool known = false;
  p.y = make_spans(from.height, p.size.height, o.method, o.antialias, &known);
  if (known) {
    p.x = make_spans(from.width, p.size.width, o.method, o.antialias, &known);
  }
  if (!known) {
    refuse(function, site,
           fmt::format("method is \"{}\"; expected bilinear, nearest, bicubic, "
                       "area, lanczos3, lanczos5, gaussian or mitchellcubic",
                       o.method));
  }
  return p;
}

// Copies the one pixel that each of the result is.
Tensor nearest_at_once(const Tensor& t, const Plan& p) {
  Tensor out =
      data::make_batch(t.dtype(), p.from.sized(p.size.height, p.size.width));
  const size_t pixel =
      size_of(t.dtype()) * static_cast<size_t>(p.from.channels);
  const size_t row = pixel * static_cast<size_t>(p.from.width);
  const std::byte* from = t.impl()->data();
  std::byte* to = out.impl()->data();
  for (int64_t n = 0; n < p.from.n; ++n) {
    for (int32_t y : p.y.starts) {
      const std::byte* line = from + static_cast<size_t>(y) * row;
      for (int32_t x : p.x.starts) {
        std::memcpy(to, line + static_cast<size_t>(x) * pixel, pixel);
        to += pixel;
      }
    }
    from += row * static_cast<size_t>(p.from.height);
  }
  return out;
}

template <class T>
void resample_all(const Tensor& t, const Plan& p, float* to) {
  const ImageLayout& l = p.from;
  const T* from = reinterpret_cast<const T*>(t.impl()->data());
  for (int64_t n = 0; n < l.n; ++n) {
    resample(from, l.width, l.channels, p.y, p.x, to);
    from += l.height * l.width * l.channels;
    to += p.size.height * p.size.width * l.channels;
  }
}

Tensor resize_at_once(const Tensor& images, const Plan& p, Site site) {
  if (p.nearest) return nearest_at_once(images, p);
  const Tensor t =
      images.dtype() == uint8 ? images : math::cast(images, float32, site);
  Tensor out =
      data::make_batch(float32, p.from.sized(p.size.height, p.size.width));
  auto* to = reinterpret_cast<float*>(out.impl()->data());
  t.dtype() == uint8 ? resample_all<uint8_t>(t, p, to)
                     : resample_all<float>(t, p, to);
  return out;
}

// [out, in]: the spans as a matrix.
Tensor matrix_of(const Spans& s, int64_t in, Site site) {
  const auto out = static_cast<int64_t>(s.starts.size());
  std::vector<float> all(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i) {
    const int64_t start = s.starts[static_cast<size_t>(i)];
    for (int64_t k = 0; k < s.width; ++k) {
      all[i * in + start + k] = s.weights[static_cast<size_t>(i * s.width + k)];
    }
  }
  return constant(all, {out, in}, site);
}

Tensor indices_of(const Spans& s, Site site) {
  return constant(s.starts, {static_cast<int64_t>(s.starts.size())}, site);
}

// Those sums by ops, for traces and tapes.
Tensor resize_by_ops(const Tensor& images, const Plan& p, Site site) {
  const int64_t axis = height_axis(images);
  if (p.nearest) {
    return gather(gather(images, indices_of(p.y, site), axis, site),
                  indices_of(p.x, site), axis + 1, site);
  }
  return einsum(
      "yh,...hwc,xw->...yxc",
      {matrix_of(p.y, p.from.height, site), math::cast(images, float32, site),
       matrix_of(p.x, p.from.width, site)},
      site);
}

Tensor run(const Tensor& images, const Plan& p, Site site) {
  return runs_at_once(images) ? resize_at_once(images, p, site)
                              : resize_by_ops(images, p, site);
}

// The largest of 8, 4, 2, 1 at which a picture is no smaller than asked for.
int64_t ratio_for(const Shape& jpeg, Size size) {
  for (int64_t ratio : {8, 4, 2}) {
    if ((jpeg[0] + ratio - 1) / ratio >= size.height &&
        (jpeg[1] + ratio - 1) / ratio >= size.width) {
      return ratio;
    }
  }
  return 1;
}

}  // namespace

Tensor resize(const Tensor& images, Size size, const ResizeOptions& o,
              Site site) {
  const ImageLayout l = known_layout_of(images, "resize", site);
  return run(images, plan_of("resize", l, size, o, site), site);
}

Tensor resize_with_pad(const Tensor& images, int64_t target_height,
                       int64_t target_width, const ResizeOptions& o,
                       Site site) {
  const char* name = "resize_with_pad";
  const ImageLayout l = known_layout_of(images, name, site);
  check_size(name, site, {target_height, target_width});
  const auto over = [](int64_t a, int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  const double ratio =
      std::max(over(l.height, target_height), over(l.width, target_width));
  const auto shrunk = [&](int64_t n) {
    return std::max<int64_t>(
        1, static_cast<int64_t>(static_cast<double>(n) / ratio));
  };
  // Halves of what is left before the size becomes whole, as in TensorFlow.
  const auto margin = [&](int64_t target, int64_t n) {
    return static_cast<int64_t>(std::max(
        0.0,
        (static_cast<double>(target) - static_cast<double>(n) / ratio) / 2));
  };
  ResizeOptions fit = o;
  fit.preserve_aspect_ratio = false;
  const Plan p =
      plan_of(name, l, {shrunk(l.height), shrunk(l.width)}, fit, site);
  return pad_to_bounding_box(
      run(images, p, site), margin(target_height, l.height),
      margin(target_width, l.width), target_height, target_width, site);
}

Tensor decode_and_resize(const Tensor& contents, Size size,
                         const DecodeAndResizeOptions& o, Site site) {
  const char* name = "decode_and_resize";
  check_size(name, site, size);
  return io::named_call(name, site, [&] {
    Tensor pixels;
    if (io::is_jpeg(contents)) {
      io::DecodeJpegOptions decode{.channels = o.channels,
                                   .max_pixels = o.max_pixels};
      if (o.scaled_decode) {
        decode.ratio = ratio_for(io::extract_jpeg_shape(contents), size);
      }
      pixels = io::decode_jpeg(contents, decode, Site{});
    } else {
      pixels = io::decode_image(
          contents, {.channels = o.channels, .max_pixels = o.max_pixels},
          Site{});
    }
    return resize(pixels, size, {.method = o.method, .antialias = o.antialias},
                  Site{});
  });
}

}  // namespace berth::image
