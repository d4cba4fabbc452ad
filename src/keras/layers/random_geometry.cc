// Layers that move pixels: sizes, parts, flips, plane transforms.

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "keras/layers/augment.h"
#include "keras/layers/image_resize.h"
#include "keras/layers/plane_transform.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class ResizingBase final : public AugmentBase {
 public:
  ResizingBase(int64_t height, int64_t width, const ResizingOptions& o,
               Site site)
      : AugmentBase("Resizing", o.name, {}, site),
        h_(height),
        w_(width),
        o_(o),
        kind_(interpolation_of(state(), o.interpolation)) {
    check_positive(state(), "height", h_);
    check_positive(state(), "width", w_);
    if (o_.crop_to_aspect_ratio && o_.pad_to_aspect_ratio) {
      fail(
          "Resizing: crop_to_aspect_ratio and pad_to_aspect_ratio are set; "
          "expected one of them");
    }
  }

 protected:
  Tensor change(const Tensor& x, bool) override {
    const int64_t h = x.shape()[1], w = x.shape()[2];
    Tensor y = x;
    if (o_.crop_to_aspect_ratio) {
      const int64_t ph = std::clamp<int64_t>(w * h_ / w_, 1, h);
      const int64_t pw = std::clamp<int64_t>(h * w_ / h_, 1, w);
      y = slice(x, {0, (h - ph) / 2, (w - pw) / 2, 0}, {-1, ph, pw, -1},
                site());
    } else if (o_.pad_to_aspect_ratio) {
      const int64_t ph = std::max<int64_t>(w * h_ / w_, h);
      const int64_t pw = std::max<int64_t>(h * w_ / h_, w);
      const int64_t top = (ph - h) / 2, left = (pw - w) / 2;
      y = pad(x, {0, 0, top, ph - h - top, left, pw - w - left, 0, 0},
              {.constant_values = o_.fill_value}, site());
    }
    return resized(y, h_, w_, kind_, o_.antialias, site());
  }

 private:
  const int64_t h_, w_;
  const ResizingOptions o_;
  const Interpolation kind_;
};

class CropBase final : public AugmentBase {
 public:
  CropBase(const char* type, bool random, int64_t height, int64_t width,
           const RandomOptions& o, Site site)
      : AugmentBase(type, o.name, o.seed, site),
        random_(random),
        h_(height),
        w_(width),
        seed_of_places_(o.seed) {
    check_positive(state(), "height", h_);
    check_positive(state(), "width", w_);
  }

 protected:
  Tensor change(const Tensor& x, bool training) override {
    const int64_t h = x.shape()[1], w = x.shape()[2];
    if (!random_ || !training || h < h_ || w < w_) return centered(x, h_, w_);
    return along(along(x, 1, h, h_), 2, w, w_);
  }

 private:
  // `part` pixels in a row from a random one of `all`.
  Tensor along(const Tensor& x, int axis, int64_t all, int64_t part) const {
    if (all == part) return x;
    const Tensor first =
        random::uniform({},
                        {.maxval = static_cast<double>(all - part + 1),
                         .dtype = int32,
                         .seed = seed_of_places_},
                        site());
    return gather(x, math::add(range(0, part, 1, int32, site()), first, site()),
                  axis, site());
  }

  const bool random_;
  const int64_t h_, w_;
  const std::optional<int64_t> seed_of_places_;
};

class FlipBase final : public AugmentBase {
 public:
  FlipBase(const std::string& mode, const RandomOptions& o, Site site)
      : AugmentBase("RandomFlip", o.name, o.seed, site),
        across_(mode != "vertical"),
        down_(mode != "horizontal") {
    if (mode == "horizontal" || mode == "vertical" ||
        mode == "horizontal_and_vertical") {
      return;
    }
    fail_in(state(),
            "RandomFlip: mode is \"{}\"; expected horizontal, vertical "
            "or horizontal_and_vertical",
            mode);
  }

 protected:
  Tensor change(const Tensor& x, bool training) override {
    if (!training) return x;
    Tensor y = x;
    if (across_) y = maybe(y, 2);
    return down_ ? maybe(y, 1) : y;
  }

 private:
  Tensor maybe(const Tensor& x, int64_t axis) const {
    return where(draw(x, {0, 1}) > 0.5, x, reverse(x, {axis}, site()), site());
  }
  const bool across_, down_;
};

// Each image through a transform of its own.
class PlaneBase : public AugmentBase {
 public:
  PlaneBase(const char* type, const RandomTransformOptions& o, Site site)
      : AugmentBase(type, o.name, o.seed, site),
        how_{fill_mode_of(state(), o.fill_mode), o.fill_value,
             o.interpolation == "bilinear"} {
    if (how_.bilinear || o.interpolation == "nearest") return;
    fail_in(state(),
            "{}: interpolation is \"{}\"; expected bilinear or nearest", type,
            o.interpolation);
  }

 protected:
  virtual PlaneTransform plane(const Tensor& x) const = 0;
  Tensor change(const Tensor& x, bool training) final {
    return training ? transformed(x, plane(x), how_, site()) : x;
  }
  Tensor same(const Tensor& x, double value) const {
    return draw(x, {value, value}, 2);
  }

 private:
  const TransformOptions how_;
};

class RotationBase final : public PlaneBase {
 public:
  RotationBase(const Factor& f, const RandomTransformOptions& o, Site site)
      : PlaneBase("RandomRotation", o, site),
        range_(range_of("factor", f, -1, 1)) {}

 protected:
  PlaneTransform plane(const Tensor& x) const override {
    constexpr double kTurn = 2 * 3.14159265358979323846;
    const Tensor angle = draw(x, range_, 2) * kTurn;
    const Tensor c = math::cos(angle, site()), s = math::sin(angle, site());
    const double cx = static_cast<double>(x.shape()[2] - 1) / 2;
    const double cy = static_cast<double>(x.shape()[1] - 1) / 2;
    return {c, -s, cx - c * cx + s * cy, s, c, cy - s * cx - c * cy, {}, {}};
  }

 private:
  const Range range_;
};

class TranslationBase final : public PlaneBase {
 public:
  TranslationBase(const Factor& height, const Factor& width,
                  const RandomTransformOptions& o, Site site)
      : PlaneBase("RandomTranslation", o, site),
        height_(range_of("height_factor", height, -1, 1)),
        width_(range_of("width_factor", width, -1, 1)) {}

 protected:
  PlaneTransform plane(const Tensor& x) const override {
    const Tensor dy = draw(x, height_, 2) * static_cast<double>(x.shape()[1]);
    const Tensor dx = draw(x, width_, 2) * static_cast<double>(x.shape()[2]);
    return {same(x, 1), {}, -dx, {}, same(x, 1), -dy, {}, {}};
  }

 private:
  const Range height_, width_;
};

class ZoomBase final : public PlaneBase {
 public:
  ZoomBase(const Factor& height, const std::optional<Factor>& width,
           const RandomTransformOptions& o, Site site)
      : PlaneBase("RandomZoom", o, site),
        height_(range_of("height_factor", height, -0.999999, 1)) {
    if (width) width_ = range_of("width_factor", *width, -0.999999, 1);
  }

 protected:
  PlaneTransform plane(const Tensor& x) const override {
    const Tensor zy = draw(x, height_, 2) + 1.0;
    const Tensor zx = width_ ? draw(x, *width_, 2) + 1.0 : zy;
    const double cx = static_cast<double>(x.shape()[2] - 1) / 2;
    const double cy = static_cast<double>(x.shape()[1] - 1) / 2;
    return {zx, {}, (1.0 - zx) * cx, {}, zy, (1.0 - zy) * cy, {}, {}};
  }

 private:
  const Range height_;
  std::optional<Range> width_;
};

class ShearBase final : public PlaneBase {
 public:
  ShearBase(const Factor& x, const Factor& y, const RandomTransformOptions& o,
            Site site)
      : PlaneBase("RandomShear", o, site),
        x_(range_of("x_factor", x, 0, 1)),
        y_(range_of("y_factor", y, 0, 1)) {}

 protected:
  PlaneTransform plane(const Tensor& x) const override {
    const Tensor sign = signs(x, 2);
    return {same(x, 1), draw(x, x_, 2) * sign,
            {},         draw(x, y_, 2) * sign,
            same(x, 1), {},
            {},         {}};
  }

 private:
  const Range x_, y_;
};

void resizing_fields(Fields& f, int64_t& height, int64_t& width,
                     ResizingOptions& o) {
  f.must("height", height);
  f.must("width", width);
  f("interpolation", o.interpolation);
  f("crop_to_aspect_ratio", o.crop_to_aspect_ratio);
  f("pad_to_aspect_ratio", o.pad_to_aspect_ratio);
  f.fixed("fill_mode", "constant");
  f("fill_value", o.fill_value);
  f("antialias", o.antialias);
}
template <class Options>
void crop_fields(Fields& f, int64_t& height, int64_t& width, Options& o) {
  f.must("height", height);
  f.must("width", width);
  if constexpr (requires { o.seed; }) f("seed", o.seed);
}
void random_flip_fields(Fields& f, std::string& mode, RandomOptions& o) {
  if (f.reading()) mode = "horizontal_and_vertical";
  f("mode", mode);
  f("seed", o.seed);
}
void plane_fields(Fields& f, RandomTransformOptions& o) {
  f("fill_mode", o.fill_mode);
  f("interpolation", o.interpolation);
  f("fill_value", o.fill_value);
  f("seed", o.seed);
}
void random_rotation_fields(Fields& f, Factor& factor,
                            RandomTransformOptions& o) {
  factor_field(f, "factor", factor);
  plane_fields(f, o);
}
void random_translation_fields(Fields& f, Factor& height, Factor& width,
                               RandomTransformOptions& o) {
  factor_field(f, "height_factor", height);
  factor_field(f, "width_factor", width);
  plane_fields(f, o);
}
void random_shear_fields(Fields& f, Factor& x, Factor& y,
                         RandomTransformOptions& o) {
  factor_field(f, "x_factor", x);
  factor_field(f, "y_factor", y);
  plane_fields(f, o);
}
void random_zoom_fields(Fields& f, Factor& height, std::optional<Factor>& width,
                        RandomTransformOptions& o) {
  factor_field(f, "height_factor", height);
  if (f.reading() ? f.get("width_factor").has_value() : width.has_value()) {
    if (!width) width = 0.0;
    factor_field(f, "width_factor", *width);
  }
  plane_fields(f, o);
}

}  // namespace

Resizing::Resizing(int64_t height, int64_t width, ResizingOptions o, Site site)
    : Layer(described<ResizingBase, resizing_fields>(site, height, width,
                                                     std::move(o))) {}
CenterCrop::CenterCrop(int64_t height, int64_t width, NameOptions o, Site site)
    : Layer(make_layer<CropBase>("CenterCrop", false, height, width,
                                 RandomOptions{.name = o.name}, site)) {
  describe<crop_fields<NameOptions>>(*this, height, width, std::move(o));
}
RandomCrop::RandomCrop(int64_t height, int64_t width, RandomOptions o,
                       Site site)
    : Layer(make_layer<CropBase>("RandomCrop", true, height, width, o, site)) {
  describe<crop_fields<RandomOptions>>(*this, height, width, std::move(o));
}
RandomFlip::RandomFlip(std::string mode, RandomOptions o, Site site)
    : Layer(described<FlipBase, random_flip_fields>(site, std::move(mode),
                                                    std::move(o))) {}
RandomRotation::RandomRotation(Factor f, RandomTransformOptions o, Site site)
    : Layer(described<RotationBase, random_rotation_fields>(site, f,
                                                            std::move(o))) {}
RandomTranslation::RandomTranslation(Factor height, Factor width,
                                     RandomTransformOptions o, Site site)
    : Layer(described<TranslationBase, random_translation_fields>(
          site, height, width, std::move(o))) {}
RandomZoom::RandomZoom(Factor height, std::optional<Factor> width,
                       RandomTransformOptions o, Site site)
    : Layer(described<ZoomBase, random_zoom_fields>(site, height, width,
                                                    std::move(o))) {}
RandomShear::RandomShear(Factor x, Factor y, RandomTransformOptions o,
                         Site site)
    : Layer(described<ShearBase, random_shear_fields>(site, x, y,
                                                      std::move(o))) {}

void add_geometry_classes(Classes& c) {
  c.layers["Resizing"] = &layer_of<Resizing, resizing_fields>;
  c.layers["CenterCrop"] = &layer_of<CenterCrop, crop_fields<NameOptions>>;
  c.layers["RandomCrop"] = &layer_of<RandomCrop, crop_fields<RandomOptions>>;
  c.layers["RandomFlip"] = &layer_of<RandomFlip, random_flip_fields>;
  c.layers["RandomRotation"] =
      &layer_of<RandomRotation, random_rotation_fields>;
  c.layers["RandomTranslation"] =
      &layer_of<RandomTranslation, random_translation_fields>;
  c.layers["RandomZoom"] = &layer_of<RandomZoom, random_zoom_fields>;
  c.layers["RandomShear"] = &layer_of<RandomShear, random_shear_fields>;
}

}  // namespace berth::keras
