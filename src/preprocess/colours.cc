// Colours: composites of ops, and loops for hue and saturation.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "berth/image.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "data/row_source.h"
#include "preprocess/image_util.h"
#include "preprocess/pixel_colours.h"
#include "tensor/tensor_impl.h"
#include "tensor/visit_dtype.h"

namespace berth::image {

namespace {

using math::ReduceOptions;

double largest_of(DType dtype) {
  return visit_dtype(dtype, "a picture", [](auto type) {
    return convert_element<double>(std::numeric_limits<decltype(type)>::max());
  });
}

// fn(the picture as floats), converted back.
Tensor on_floats(const Tensor& image, Site site,
                 const std::function<Tensor(const Tensor&)>& fn) {
  if (is_floating(image.dtype())) return fn(image);
  return convert_image_dtype(
      fn(convert_image_dtype(image, float32, false, site)), image.dtype(), true,
      site);
}

Tensor matrix(std::initializer_list<float> values, Site site) {
  return constant(std::vector<float>(values), {3, 3}, site);
}

Tensor times_matrix(const char* name, const Tensor& images,
                    std::initializer_list<float> values, Site site) {
  layout_of(images, name, site);
  check_rgb(images, name, site);
  return tensordot(images, math::cast(matrix(values, site), images.dtype()), 1,
                   site);
}

// A picture of float32 on the host, changed pixel by pixel.
template <class F>
Tensor each_pixel(const Tensor& image, F&& change) {
  Tensor out = data::make_batch(float32, image.shape());
  const auto* from = reinterpret_cast<const float*>(image.impl()->data());
  auto* to = reinterpret_cast<float*>(out.impl()->data());
  const int64_t n = image.num_elements();
  for (int64_t i = 0; i < n; i += 3) {
    const Hsv hsv = change(hsv_of({from[i], from[i + 1], from[i + 2]}));
    const Rgb rgb = rgb_of(hsv);
    to[i] = rgb.r;
    to[i + 1] = rgb.g;
    to[i + 2] = rgb.b;
  }
  return out;
}

Tensor clipped(const Tensor& x, Site site) {
  return clip_by_value(x, 0.0, 1.0, site);
}

}  // namespace

Tensor convert_image_dtype(const Tensor& image, DType dtype, bool, Site site) {
  const char* name = "convert_image_dtype";
  if (!image.defined()) refuse(name, site, "the image is an empty Tensor");
  const DType from = image.dtype();
  if (from == dtype) return image;
  const auto number = [](DType d) { return is_floating(d) || is_integer(d); };
  if (!number(from) || !number(dtype)) {
    refuse(name, site,
           fmt::format("from {} to {}; expected floats or integers",
                       name_of(from), name_of(dtype)));
  }
  if (is_floating(from) && is_floating(dtype)) {
    return math::cast(image, dtype, site);
  }
  if (is_floating(dtype)) {
    return math::cast(image, dtype, site) * (1 / largest_of(from));
  }
  // cast() bounds what is beyond the integers.
  if (is_floating(from)) {
    return math::cast(image * (largest_of(dtype) + 0.5), dtype, site);
  }
  const double a = largest_of(from) + 1, b = largest_of(dtype) + 1;
  if (a > b) {
    const Tensor scale = fill(Shape{}, a / b, from, site);
    return math::cast(math::floordiv(image, scale, site), dtype, site);
  }
  const Tensor wide = math::cast(image, dtype, site);
  return math::multiply(wide, fill(Shape{}, b / a, dtype, site), site);
}

Tensor adjust_brightness(const Tensor& image, double delta, Site site) {
  layout_of(image, "adjust_brightness", site);
  return on_floats(image, site, [&](const Tensor& x) { return x + delta; });
}

Tensor adjust_contrast(const Tensor& images, double contrast_factor,
                       Site site) {
  layout_of(images, "adjust_contrast", site);
  const int64_t axis = height_axis(images);
  return on_floats(images, site, [&](const Tensor& x) {
    const Tensor mean = math::reduce_mean(
        x, {.axis = {{axis, axis + 1}}, .keepdims = true}, site);
    return (x - mean) * contrast_factor + mean;
  });
}

Tensor adjust_gamma(const Tensor& image, double gamma, double gain, Site site) {
  const char* name = "adjust_gamma";
  layout_of(image, name, site);
  if (!(gamma >= 0)) {
    refuse(name, site, fmt::format("gamma is {}; expected 0 or more", gamma));
  }
  return on_floats(image, site, [&](const Tensor& x) {
    return math::pow(x, fill(Shape{}, gamma, x.dtype(), site), site) * gain;
  });
}

Tensor adjust_hue(const Tensor& image, double delta, Site site) {
  const char* name = "adjust_hue";
  layout_of(image, name, site);
  check_rgb(image, name, site);
  if (!(delta >= -1 && delta <= 1)) {
    refuse(name, site, fmt::format("delta is {}; expected -1 to 1", delta));
  }
  return on_floats(image, site, [&](const Tensor& x) {
    const auto turned = static_cast<float>(delta);
    if (x.dtype() == float32 && runs_at_once(x)) {
      return each_pixel(x, [&](Hsv c) {
        c.h = turn_of(c.h + turned);
        return c;
      });
    }
    const Tensors hsv = split(rgb_to_hsv(x, site), 3, -1, site);
    const Tensor sum = hsv[0] + delta;
    return hsv_to_rgb(
        concat({sum - math::floor(sum, site), hsv[1], hsv[2]}, -1, site), site);
  });
}

Tensor adjust_saturation(const Tensor& image, double saturation_factor,
                         Site site) {
  const char* name = "adjust_saturation";
  layout_of(image, name, site);
  check_rgb(image, name, site);
  if (!(saturation_factor >= 0)) {
    refuse(name, site,
           fmt::format("saturation_factor is {}; expected 0 or "
                       "more",
                       saturation_factor));
  }
  return on_floats(image, site, [&](const Tensor& x) {
    const auto factor = static_cast<float>(saturation_factor);
    if (x.dtype() == float32 && runs_at_once(x)) {
      return each_pixel(x, [&](Hsv c) {
        c.s = std::clamp(c.s * factor, 0.0f, 1.0f);
        return c;
      });
    }
    const Tensors hsv = split(rgb_to_hsv(x, site), 3, -1, site);
    return hsv_to_rgb(
        concat({hsv[0], clipped(hsv[1] * saturation_factor, site), hsv[2]}, -1,
               site),
        site);
  });
}

Tensor adjust_jpeg_quality(const Tensor& image, int jpeg_quality, Site site) {
  layout_of(image, "adjust_jpeg_quality", site);
  const Tensor bytes = convert_image_dtype(image, uint8, true, site);
  const Tensor jpeg = encode_jpeg(bytes, {.quality = jpeg_quality}, site);
  const int64_t channels = bytes.shape()[2];
  return convert_image_dtype(decode_jpeg(jpeg, {.channels = channels}, site),
                             image.dtype(), true, site);
}

Tensor rgb_to_grayscale(const Tensor& images, Site site) {
  const char* name = "rgb_to_grayscale";
  layout_of(images, name, site);
  check_rgb(images, name, site);
  const auto weighted = [&](const Tensor& x) {
    const Tensor w =
        constant(std::vector<float>{0.2989f, 0.5870f, 0.1140f}, {3, 1}, site);
    return tensordot(x, math::cast(w, x.dtype(), site), 1, site);
  };
  return on_floats(images, site, weighted);
}

Tensor grayscale_to_rgb(const Tensor& images, Site site) {
  const char* name = "grayscale_to_rgb";
  const ImageLayout l = layout_of(images, name, site);
  if (l.channels != 1) {
    refuse(name, site,
           fmt::format("the image is {}; expected 1 channel",
                       images.spec().str()));
  }
  return concat({images, images, images}, -1, site);
}

Tensor rgb_to_hsv(const Tensor& images, Site site) {
  const char* name = "rgb_to_hsv";
  check_rgb(images, name, site);
  if (!is_floating(images.dtype())) {
    refuse(name, site,
           fmt::format("the image is {}; expected floats from 0 to "
                       "1: convert_image_dtype makes them",
                       images.spec().str()));
  }
  const Tensors c = split(images, 3, -1, site);
  const ReduceOptions last{.axis = {{-1}}, .keepdims = true};
  const Tensor v = math::reduce_max(images, last, site);
  const Tensor range = v - math::reduce_min(images, last, site);
  const Tensor zero = zeros_like(v, site);
  const Tensor coloured = range > 0.0;
  const Tensor one = ones_like(v, site);
  const Tensor norm = 1.0 / (6.0 * where(coloured, range, one, site));
  const Tensor h =
      where(math::equal(c[0], v, site), norm * (c[1] - c[2]),
            where(math::equal(c[1], v, site), norm * (c[2] - c[0]) + 2.0 / 6,
                  norm * (c[0] - c[1]) + 4.0 / 6, site),
            site);
  const Tensor positive = where(h < 0.0, h + 1.0, h, site);
  const Tensor s =
      where(v > 0.0, range / where(v > 0.0, v, one, site), zero, site);
  return concat({where(coloured, positive, zero, site), s, v}, -1, site);
}

Tensor hsv_to_rgb(const Tensor& images, Site site) {
  const char* name = "hsv_to_rgb";
  check_rgb(images, name, site);
  if (!is_floating(images.dtype())) {
    refuse(name, site,
           fmt::format("the image is {}; expected floats from 0 to "
                       "1",
                       images.spec().str()));
  }
  const Tensors c = split(images, 3, -1, site);
  const Tensor h = c[0] * 6.0;
  const Tensor r = clipped(math::abs(h - 3.0, site) - 1.0, site);
  const Tensor g = clipped(2.0 - math::abs(h - 2.0, site), site);
  const Tensor b = clipped(2.0 - math::abs(h - 4.0, site), site);
  const Tensor pure = concat({r, g, b}, -1, site);
  return ((1.0 - c[1]) + c[1] * pure) * c[2];
}

Tensor rgb_to_yuv(const Tensor& images, Site site) {
  return times_matrix("rgb_to_yuv", images,
                      {0.299f, -0.14714119f, 0.61497538f, 0.587f, -0.28886916f,
                       -0.51496512f, 0.114f, 0.43601035f, -0.10001026f},
                      site);
}
Tensor yuv_to_rgb(const Tensor& images, Site site) {
  return times_matrix(
      "yuv_to_rgb", images,
      {1, 1, 1, 0, -0.394642334f, 2.03206185f, 1.13988303f, -0.58062185f, 0},
      site);
}
Tensor rgb_to_yiq(const Tensor& images, Site site) {
  return times_matrix("rgb_to_yiq", images,
                      {0.299f, 0.59590059f, 0.2115f, 0.587f, -0.27455667f,
                       -0.52273617f, 0.114f, -0.32134392f, 0.31119955f},
                      site);
}
Tensor yiq_to_rgb(const Tensor& images, Site site) {
  return times_matrix("yiq_to_rgb", images,
                      {1, 1, 1, 0.95598634f, -0.27201283f, -1.10674021f,
                       0.6208248f, -0.64720424f, 1.70423049f},
                      site);
}

Tensor per_image_standardization(const Tensor& image, Site site) {
  const ImageLayout l =
      known_layout_of(image, "per_image_standardization", site);
  const int64_t axis = height_axis(image);
  const ReduceOptions all{.axis = {{axis, axis + 1, axis + 2}},
                          .keepdims = true};
  const Tensor x = math::cast(image, float32, site);
  const auto elements = static_cast<double>(l.height * l.width * l.channels);
  const Tensor stddev = math::reduce_std(x, all, site);
  const Tensor least = fill(Shape{}, 1 / std::sqrt(elements), float32, site);
  return (x - math::reduce_mean(x, all, site)) /
         math::maximum(stddev, least, site);
}

}  // namespace berth::image
