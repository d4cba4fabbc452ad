// Windows, margins and flips: composites of slice, pad, reverse, transpose.

#include <fmt/format.h>

#include "base/needs_values.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/image.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "preprocess/draws.h"
#include "preprocess/image_util.h"

namespace berth::image {

namespace {

using Sizes = std::vector<int64_t>;

Tensor window(const Tensor& image, int64_t y, int64_t x, int64_t height,
              int64_t width, Site site) {
  Sizes begin(static_cast<size_t>(image.rank()), 0);
  Sizes size(begin.size(), -1);
  const auto axis = static_cast<size_t>(height_axis(image));
  begin[axis] = y;
  begin[axis + 1] = x;
  size[axis] = height;
  size[axis + 1] = width;
  return slice(image, begin, size, site);
}

Tensor margins(const Tensor& image, int64_t top, int64_t bottom, int64_t left,
               int64_t right, Site site) {
  Sizes paddings(2 * static_cast<size_t>(image.rank()), 0);
  const auto axis = static_cast<size_t>(height_axis(image));
  paddings[2 * axis] = top;
  paddings[2 * axis + 1] = bottom;
  paddings[2 * axis + 2] = left;
  paddings[2 * axis + 3] = right;
  return pad(image, paddings, {}, site);
}

// Each picture turned over along `axis` of height (0) or width (1), or not.
Tensor maybe_flipped(const char* name, const Tensor& image, int axis,
                     const Drawn& drawn, Site site) {
  const ImageLayout l = layout_of(image, name, site);
  const Tensor flipped = reverse(image, {height_axis(image) + axis}, site);
  const Shape shape = l.batched ? Shape{l.n, 1, 1, 1} : Shape{1, 1, 1};
  if (l.batched && l.n < 0) {
    refuse(name, site,
           "the number of pictures is unknown; expected a known "
           "one in a traced function");
  }
  return where(drawn.numbers(shape, 0, 1, site) < 0.5, flipped, image, site);
}

Tensor cropped(const char* name, const Tensor& value, const Shape& size,
               const Drawn& drawn, Site site) {
  if (!value.defined() || value.is_symbolic()) {
    throw Untraceable<errors::FailedPrecondition>(fmt::format(
        "{}: the value has no numbers yet; call this in the map of a "
        "dataset",
        call_text(name, site)));
  }
  const Shape& s = value.shape();
  bool fits = size.rank() == s.rank();
  for (int i = 0; fits && i < s.rank(); ++i) {
    fits = size[i] >= 0 && size[i] <= s[i];
  }
  if (!fits) {
    refuse(name, site,
           fmt::format("a window of {} in {}; expected as many "
                       "dimensions, none larger",
                       size.str(), s.str()));
  }
  // One draw for all axes: each takes its share of the numbers.
  const auto u = drawn.numbers({s.rank()}, 0, 1, site).to_vector<double>();
  Sizes begin, sizes;
  for (int i = 0; i < s.rank(); ++i) {
    const auto places = static_cast<double>(s[i] - size[i] + 1);
    begin.push_back(
        std::min(static_cast<int64_t>(u[i] * places), s[i] - size[i]));
    sizes.push_back(size[i]);
  }
  return slice(value, begin, sizes, site);
}

}  // namespace

Tensor crop_to_bounding_box(const Tensor& image, int64_t offset_height,
                            int64_t offset_width, int64_t target_height,
                            int64_t target_width, Site site) {
  const char* name = "crop_to_bounding_box";
  const ImageLayout l = known_layout_of(image, name, site);
  if (offset_height < 0 || offset_width < 0 || target_height < 1 ||
      target_width < 1 || target_height > l.height || target_width > l.width ||
      offset_height > l.height - target_height ||
      offset_width > l.width - target_width) {
    refuse(name, site,
           fmt::format("{} x {} at ({}, {}) of a picture of {} x {}; expected "
                       "a window within it",
                       target_height, target_width, offset_height, offset_width,
                       l.height, l.width));
  }
  return window(image, offset_height, offset_width, target_height, target_width,
                site);
}

Tensor pad_to_bounding_box(const Tensor& image, int64_t offset_height,
                           int64_t offset_width, int64_t target_height,
                           int64_t target_width, Site site) {
  const char* name = "pad_to_bounding_box";
  const ImageLayout l = known_layout_of(image, name, site);
  constexpr int64_t kMost = int64_t{1} << 24;
  if (offset_height < 0 || offset_width < 0 || target_height > kMost ||
      target_width > kMost || offset_height > target_height - l.height ||
      offset_width > target_width - l.width) {
    refuse(name, site,
           fmt::format("a picture of {} x {} at ({}, {}) of {} x {}; expected "
                       "it to fit",
                       l.height, l.width, offset_height, offset_width,
                       target_height, target_width));
  }
  return margins(image, offset_height, target_height - l.height - offset_height,
                 offset_width, target_width - l.width - offset_width, site);
}

Tensor resize_with_crop_or_pad(const Tensor& image, int64_t target_height,
                               int64_t target_width, Site site) {
  const char* name = "resize_with_crop_or_pad";
  const ImageLayout l = known_layout_of(image, name, site);
  if (target_height < 1 || target_width < 1) {
    refuse(name, site,
           fmt::format("the target is {} x {}; expected at least "
                       "1 x 1",
                       target_height, target_width));
  }
  const int64_t height = std::min(l.height, target_height);
  const int64_t width = std::min(l.width, target_width);
  const Tensor middle = window(image, (l.height - height) / 2,
                               (l.width - width) / 2, height, width, site);
  return pad_to_bounding_box(middle, (target_height - height) / 2,
                             (target_width - width) / 2, target_height,
                             target_width, site);
}

Tensor central_crop(const Tensor& image, double central_fraction, Site site) {
  const char* name = "central_crop";
  const ImageLayout l = known_layout_of(image, name, site);
  if (!(central_fraction > 0 && central_fraction <= 1)) {
    refuse(name, site,
           fmt::format("central_fraction is {}; expected above 0, "
                       "at most 1",
                       central_fraction));
  }
  const auto margin = [&](int64_t n) {
    const auto d = static_cast<double>(n);
    return static_cast<int64_t>((d - d * central_fraction) / 2);
  };
  const int64_t y = margin(l.height), x = margin(l.width);
  return window(image, y, x, l.height - 2 * y, l.width - 2 * x, site);
}

Tensor random_crop(const Tensor& value, const Shape& size,
                   std::optional<int64_t> seed, Site site) {
  return cropped("random_crop", value, size, Drawn(seed), site);
}
Tensor stateless_random_crop(const Tensor& value, const Shape& size,
                             StatelessSeed seed, Site site) {
  return cropped("stateless_random_crop", value, size, Drawn(seed), site);
}

Tensor flip_left_right(const Tensor& image, Site site) {
  layout_of(image, "flip_left_right", site);
  return reverse(image, {height_axis(image) + 1}, site);
}
Tensor flip_up_down(const Tensor& image, Site site) {
  layout_of(image, "flip_up_down", site);
  return reverse(image, {height_axis(image)}, site);
}

Tensor transpose(const Tensor& image, Site site) {
  const ImageLayout l = layout_of(image, "transpose", site);
  return berth::transpose(image, l.batched ? Sizes{0, 2, 1, 3} : Sizes{1, 0, 2},
                          site);
}

Tensor rot90(const Tensor& image, int64_t k, Site site) {
  layout_of(image, "rot90", site);
  const int64_t axis = height_axis(image);
  switch (((k % 4) + 4) % 4) {
    case 1:
      return reverse(transpose(image, site), {axis}, site);
    case 2:
      return reverse(image, {axis, axis + 1}, site);
    case 3:
      return transpose(reverse(image, {axis}, site), site);
    default:
      return image;
  }
}

Tensor random_flip_left_right(const Tensor& image, std::optional<int64_t> seed,
                              Site site) {
  return maybe_flipped("random_flip_left_right", image, 1, Drawn(seed), site);
}
Tensor random_flip_up_down(const Tensor& image, std::optional<int64_t> seed,
                           Site site) {
  return maybe_flipped("random_flip_up_down", image, 0, Drawn(seed), site);
}
Tensor stateless_random_flip_left_right(const Tensor& image, StatelessSeed seed,
                                        Site site) {
  return maybe_flipped("stateless_random_flip_left_right", image, 1,
                       Drawn(seed), site);
}
Tensor stateless_random_flip_up_down(const Tensor& image, StatelessSeed seed,
                                     Site site) {
  return maybe_flipped("stateless_random_flip_up_down", image, 0, Drawn(seed),
                       site);
}

}  // namespace berth::image
