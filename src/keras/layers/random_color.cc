// Layers that change the values of pixels.

#include <algorithm>
#include <cmath>

#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "keras/layers/augment.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

// Changes images in training, by fn(layer, images).
class ColorBase : public AugmentBase {
 public:
  ColorBase(const char* type, const RandomColorOptions& o, Site site)
      : AugmentBase(type, o.name, o.seed, site), values_(o.value_range) {
    check_range(values_);
  }

 protected:
  virtual Tensor recolored(const Tensor& x) const = 0;
  Tensor change(const Tensor& x, bool training) final {
    return training ? recolored(x) : x;
  }
  const ValueRange values_;
};

class BrightnessBase final : public ColorBase {
 public:
  BrightnessBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomBrightness", o, site),
        range_(range_of("factor", f, -1, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    return cut(x + draw(x, range_) * (values_.high - values_.low), values_);
  }

 private:
  const Range range_;
};

class ContrastBase final : public ColorBase {
 public:
  ContrastBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomContrast", o, site),
        range_{1 - f.lower.value_or(f.upper), 1 + f.upper} {
    if (range_.low >= 0 && range_.high >= range_.low && range_.high <= 2) {
      return;
    }
    fail_in(state(),
            "RandomContrast: factor is [{}, {}]; expected both in [0, 1]",
            f.lower.value_or(f.upper), f.upper);
  }

 protected:
  Tensor recolored(const Tensor& x) const override {
    const Tensor mean = math::reduce_mean(
        x, {.axis = std::vector<int64_t>{1, 2}, .keepdims = true}, site());
    return cut((x - mean) * draw(x, range_) + mean, values_);
  }

 private:
  const Range range_;
};

class GrayscaleBase final : public ColorBase {
 public:
  GrayscaleBase(double probability, const RandomOptions& o, Site site)
      : ColorBase("RandomGrayscale", {.seed = o.seed, .name = o.name}, site),
        probability_(range_of("factor", {probability, probability}, 0, 1).low) {
  }

 protected:
  Tensor recolored(const Tensor& x) const override {
    const Tensor wide = broadcast_like(grey(x), x);
    return where(draw(x, {0, 1}) < probability_, wide, x, site());
  }

 private:
  Tensor broadcast_like(const Tensor& one, const Tensor& x) const {
    return one + zeros_like(x, site());
  }
  const double probability_;
};

class DegenerationBase final : public ColorBase {
 public:
  DegenerationBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomColorDegeneration", o, site),
        range_(range_of("factor", f, 0, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    return cut(x + draw(x, range_) * (grey(x) - x), values_);
  }

 private:
  const Range range_;
};

// Hue, saturation and value of pixels of three channels, and back.
struct Hsv {
  Tensor h, s, v;  // [n, h, w, 1]; h in turns
};

Hsv hsv_of(const Tensor& x, Site site) {
  const Tensors rgb = split(x, 3, 3, site);
  const Tensor &r = rgb[0], &g = rgb[1], &b = rgb[2];
  const Tensor v = math::maximum(math::maximum(r, g, site), b, site);
  const Tensor low = math::minimum(math::minimum(r, g, site), b, site);
  const Tensor spread = v - low;
  const Tensor zero = zeros_like(v, site);
  const Tensor one = ones_like(v, site);
  const Tensor grey = math::equal(spread, zero, site);
  const Tensor d = where(grey, one, spread, site);
  const Tensor from_b = (r - g) / d + 4.0;
  const Tensor from_g = (b - r) / d + 2.0;
  const Tensor from_r = (g - b) / d;
  Tensor h = where(math::equal(v, r, site), from_r,
                   where(math::equal(v, g, site), from_g, from_b, site), site) /
             6.0;
  h = where(h < 0.0, h + 1.0, h, site);
  h = where(grey, zero, h, site);
  const Tensor s =
      where(v > 0.0, spread / where(v > 0.0, v, one, site), zero, site);
  return {h, s, v};
}

Tensor rgb_of(const Hsv& c, Site site) {
  const Tensor zero = zeros_like(c.h, site), one = ones_like(c.h, site);
  auto channel = [&](const Tensor& t) {
    const Tensor in = math::minimum(math::maximum(t, zero, site), one, site);
    return ((1.0 - c.s) + c.s * in) * c.v;
  };
  const Tensor turn = c.h * 6.0;
  return concat({channel(math::abs(turn - 3.0, site) - 1.0),
                 channel(2.0 - math::abs(turn - 2.0, site)),
                 channel(2.0 - math::abs(turn - 4.0, site))},
                3, site);
}

class SaturationBase final : public ColorBase {
 public:
  SaturationBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomSaturation", o, site),
        range_(range_of("factor", f, 0, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    grey(x);  // checks the channels
    const Tensor f = draw(x, range_);
    Hsv c = hsv_of(x, site());
    c.s = clip_by_value(c.s * (f / (1.0 - f + 1e-7)), 0, 1, site());
    return rgb_of(c, site());
  }

 private:
  const Range range_;
};

class HueBase final : public ColorBase {
 public:
  HueBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomHue", o, site), range_(range_of("factor", f, 0, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    grey(x);  // checks the channels
    const Tensor turn = draw(x, range_) * signs(x) * 0.5;
    Hsv c = hsv_of(moved(x, values_, {0, 1}), site());
    c.h = c.h + turn;
    c.h = c.h - math::floor(c.h, site());
    return moved(cut(rgb_of(c, site()), {0, 1}), {0, 1}, values_);
  }

 private:
  const Range range_;
};

class InvertBase final : public ColorBase {
 public:
  InvertBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomInvert", o, site),
        range_(range_of("factor", f, 0, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    const Tensor often = draw(x, range_);
    return where(math::less(draw(x, {0, 1}), often, site()), values_.high - x,
                 x, site());
  }

 private:
  const Range range_;
};

class PosterizationBase final : public ColorBase {
 public:
  PosterizationBase(int64_t bits, const RandomColorOptions& o, Site site)
      : ColorBase("RandomPosterization", o, site), bits_(bits) {
    if (bits_ >= 1 && bits_ <= 8) return;
    fail_in(state(), "RandomPosterization: factor is {}; expected 1 to 8 bits",
            bits_);
  }

 protected:
  Tensor recolored(const Tensor& x) const override {
    const double step = std::exp2(static_cast<double>(8 - bits_));
    const Tensor whole =
        math::floor(moved(x, values_, {0, 255}), site()) / step;
    return moved(math::floor(whole, site()) * step, {0, 255}, values_);
  }

 private:
  const int64_t bits_;
};

class SharpnessBase final : public ColorBase {
 public:
  SharpnessBase(const Factor& f, const RandomColorOptions& o, Site site)
      : ColorBase("RandomSharpness", o, site),
        range_(range_of("factor", f, 0, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    const int64_t c = x.shape()[3];
    check_positive(state(), "the number of channels", c);
    std::vector<float> kernel(static_cast<size_t>(9 * c), 1.f / 13);
    std::fill_n(kernel.begin() + 4 * c, c, 5.f / 13);
    const Tensor smooth = nn::depthwise_conv2d(
        x, constant(kernel, {3, 3, c, 1}, site()), {.padding = "SAME"}, site());
    return cut(x + (1.0 - draw(x, range_) * 2.0) * (smooth - x), values_);
  }

 private:
  const Range range_;
};

class SolarizationBase final : public ColorBase {
 public:
  SolarizationBase(const SolarizationOptions& o, Site site)
      : ColorBase(
            "Solarization",
            {.value_range = o.value_range, .seed = o.seed, .name = o.name},
            site),
        addition_(range_of("addition_factor", o.addition_factor, 0, 1)),
        threshold_(range_of("threshold_factor", o.threshold_factor, 0, 1)) {}

 protected:
  Tensor recolored(const Tensor& x) const override {
    const ValueRange bytes{0, 255};
    const Tensor more = draw(x, addition_) * 255.0;
    const Tensor limit = draw(x, threshold_) * 255.0;
    const Tensor y = cut(moved(x, values_, bytes) + more, bytes);
    return moved(where(math::less(y, limit, site()), y, 255.0 - y, site()),
                 bytes, values_);
  }

 private:
  const Range addition_, threshold_;
};

void color_fields(Fields& f, RandomColorOptions& o) {
  value_range_field(f, o.value_range);
  f("seed", o.seed);
}
void factor_fields(Fields& f, Factor& factor, RandomColorOptions& o) {
  factor_field(f, "factor", factor);
  color_fields(f, o);
}
void random_grayscale_fields(Fields& f, double& factor, RandomOptions& o) {
  if (f.reading()) factor = 0.5;
  f("factor", factor);
  f("seed", o.seed);
}
void random_posterization_fields(Fields& f, int64_t& factor,
                                 RandomColorOptions& o) {
  if (f.reading()) factor = 8;
  f("factor", factor);
  color_fields(f, o);
}
void solarization_fields(Fields& f, SolarizationOptions& o) {
  factor_field(f, "addition_factor", o.addition_factor);
  factor_field(f, "threshold_factor", o.threshold_factor);
  RandomColorOptions rest{o.value_range, o.seed, o.name};
  color_fields(f, rest);
  o.value_range = rest.value_range;
  o.seed = rest.seed;
  o.name = rest.name;
}

}  // namespace

RandomBrightness::RandomBrightness(Factor f, RandomColorOptions o, Site site)
    : Layer(described<BrightnessBase, factor_fields>(site, f, std::move(o))) {}
RandomContrast::RandomContrast(Factor f, RandomColorOptions o, Site site)
    : Layer(described<ContrastBase, factor_fields>(site, f, std::move(o))) {}
RandomGrayscale::RandomGrayscale(double f, RandomOptions o, Site site)
    : Layer(described<GrayscaleBase, random_grayscale_fields>(site, f,
                                                              std::move(o))) {}
RandomColorDegeneration::RandomColorDegeneration(Factor f, RandomColorOptions o,
                                                 Site site)
    : Layer(described<DegenerationBase, factor_fields>(site, f, std::move(o))) {
}
RandomSaturation::RandomSaturation(Factor f, RandomColorOptions o, Site site)
    : Layer(described<SaturationBase, factor_fields>(site, f, std::move(o))) {}
RandomHue::RandomHue(Factor f, RandomColorOptions o, Site site)
    : Layer(described<HueBase, factor_fields>(site, f, std::move(o))) {}
RandomInvert::RandomInvert(Factor f, RandomColorOptions o, Site site)
    : Layer(described<InvertBase, factor_fields>(site, f, std::move(o))) {}
RandomPosterization::RandomPosterization(int64_t f, RandomColorOptions o,
                                         Site site)
    : Layer(described<PosterizationBase, random_posterization_fields>(
          site, f, std::move(o))) {}
RandomSharpness::RandomSharpness(Factor f, RandomColorOptions o, Site site)
    : Layer(described<SharpnessBase, factor_fields>(site, f, std::move(o))) {}
Solarization::Solarization(SolarizationOptions o, Site site)
    : Layer(described<SolarizationBase, solarization_fields>(site,
                                                             std::move(o))) {}

void add_color_classes(Classes& c) {
  c.layers["RandomBrightness"] = &layer_of<RandomBrightness, factor_fields>;
  c.layers["RandomContrast"] = &layer_of<RandomContrast, factor_fields>;
  c.layers["RandomColorDegeneration"] =
      &layer_of<RandomColorDegeneration, factor_fields>;
  c.layers["RandomSaturation"] = &layer_of<RandomSaturation, factor_fields>;
  c.layers["RandomHue"] = &layer_of<RandomHue, factor_fields>;
  c.layers["RandomInvert"] = &layer_of<RandomInvert, factor_fields>;
  c.layers["RandomSharpness"] = &layer_of<RandomSharpness, factor_fields>;
  c.layers["RandomGrayscale"] =
      &layer_of<RandomGrayscale, random_grayscale_fields>;
  c.layers["RandomPosterization"] =
      &layer_of<RandomPosterization, random_posterization_fields>;
  c.layers["Solarization"] = &layer_of<Solarization, solarization_fields>;
}

}  // namespace berth::keras
