// Layers that blur, erase and stretch; several changes of colour at once.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "keras/layers/augment.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class AutoContrastBase final : public AugmentBase {
 public:
  AutoContrastBase(const AutoContrastOptions& o, Site site)
      : AugmentBase("AutoContrast", o.name, {}, site), values_(o.value_range) {
    check_range(values_);
  }

 protected:
  Tensor change(const Tensor& x, bool) override {
    const math::ReduceOptions pixels{.axis = std::vector<int64_t>{1, 2},
                                     .keepdims = true};
    const Tensor low = math::reduce_min(x, pixels, site()),
                 range = math::reduce_max(x, pixels, site()) - low;
    const Tensor wide = math::divide_no_nan(x - low, range, site()) *
                            (values_.high - values_.low) +
                        values_.low;
    return where(range > 0.0, cut(wide, values_), x, site());
  }

 private:
  const ValueRange values_;
};

class ErasingBase final : public AugmentBase {
 public:
  ErasingBase(const Factor& f, const RandomErasingOptions& o, Site site)
      : AugmentBase("RandomErasing", o.name, o.seed, site),
        values_(o.value_range),
        range_(range_of("factor", f, 0, 1)),
        scale_(range_of("scale", o.scale, 0, 1)),
        fill_(o.fill_value),
        seed_(o.seed) {
    check_range(values_);
  }

 protected:
  Tensor change(const Tensor& x, bool training) override {
    if (!training) return x;
    const Tensor inside =
        math::logical_and(between(x, 1), between(x, 2), site());
    const Tensor chosen = draw(x, {0, 1}) < draw(x, range_);
    const Tensor filling =
        fill_
            ? fill(x.shape(), *fill_, float32, site())
            : random::normal(x.shape(), {.seed = seed_}, site()) * values_.high;
    return where(math::logical_and(inside, chosen, site()),
                 cut(filling, values_), x, site());
  }

 private:
  // Which places along an axis lie in the rectangle, per image.
  Tensor between(const Tensor& x, int axis) const {
    const int64_t length = x.shape()[axis];
    const Tensor part =
        math::sqrt(draw(x, scale_), site()) * static_cast<double>(length);
    const Tensor from = draw(x, {0, 1}) * (static_cast<double>(length) - part);
    Shape shape{1, 1, 1, 1};
    shape[axis] = length;
    const Tensor at =
        reshape(range(0, length, 1, float32, site()), shape, site());
    return math::logical_and(at >= from, at < from + part, site());
  }

  const ValueRange values_;
  const Range range_, scale_;
  const std::optional<double> fill_;
  const std::optional<int64_t> seed_;
};

class GaussianBlurBase final : public AugmentBase {
 public:
  GaussianBlurBase(const Factor& f, const RandomGaussianBlurOptions& o,
                   Site site)
      : AugmentBase("RandomGaussianBlur", o.name, o.seed, site),
        values_(o.value_range),
        range_(range_of("factor", f, 0, 1)),
        sigma_(range_of("sigma", o.sigma, 0, 1)),
        size_(o.kernel_size) {
    check_range(values_);
    if (size_.h % 2 == 1 && size_.w % 2 == 1 && size_.h > 0 && size_.w > 0) {
      return;
    }
    fail(
        fmt::format("RandomGaussianBlur: kernel_size is {} x {}; expected odd "
                    "numbers",
                    size_.h, size_.w));
  }

 protected:
  Tensor change(const Tensor& x, bool training) override {
    if (!training) return x;
    const int64_t c = x.shape()[3];
    check_positive(state(), "the number of channels", c);
    const Tensor kernel =
        bell(x, size_.h, {size_.h, 1}) * bell(x, size_.w, {1, size_.w});
    const Tensor blurred = nn::depthwise_conv2d(
        x,
        tile(reshape(kernel, {size_.h, size_.w, 1, 1}, site()), {1, 1, c, 1},
             site()),
        {.padding = "SAME"}, site());
    const Tensor chosen = draw(x, {0, 1}) < draw(x, range_);
    return cut(where(chosen, blurred, x, site()), values_);
  }

 private:
  // Values of a normal density of a drawn deviation, of sum 1.
  Tensor bell(const Tensor& x, int64_t size, const Shape& shape) const {
    const Tensor drawn = slice(draw(x, sigma_, 2), {0, 0}, {1, 1}, site());
    const Tensor sigma = reshape(drawn, {1}, site()) + 1e-6;
    const Tensor at =
        range(0, size, 1, float32, site()) - static_cast<double>(size - 1) / 2;
    const Tensor values =
        math::exp(math::square(at / sigma, site()) * -0.5, site());
    return reshape(values / math::reduce_sum(values, {}, site()), shape,
                   site());
  }

  const ValueRange values_;
  const Range range_, sigma_;
  const Size2D size_;
};

class ColorJitterBase final : public LayerBase {
 public:
  ColorJitterBase(const RandomColorJitterOptions& o, Site site)
      : LayerBase("RandomColorJitter", o.name, site) {
    const RandomColorOptions each{.value_range = o.value_range, .seed = o.seed};
    state().casts_inputs = false;
    if (o.brightness_factor) {
      layers_.push_back(track(RandomBrightness(*o.brightness_factor, each)));
    }
    if (o.contrast_factor) {
      layers_.push_back(track(RandomContrast(*o.contrast_factor, each)));
    }
    if (o.saturation_factor) {
      layers_.push_back(track(RandomSaturation(*o.saturation_factor, each)));
    }
    if (o.hue_factor) {
      layers_.push_back(track(RandomHue(*o.hue_factor, each)));
    }
  }
  Tensors call(const Tensors& x, bool training) override {
    Tensor y = math::cast(one_input(state(), x), float32, site());
    for (const Layer& l : layers_) y = l(y, training);
    return {y};
  }

 private:
  std::vector<Layer> layers_;
};

void value_range_field(Fields& f, ValueRange& v) {
  std::vector<double> range{v.low, v.high};
  f("value_range", range);
  range.resize(2, 0);
  v = {range[0], range[1]};
}
void factor_field_or_null(Fields& f, const char* name,
                          std::optional<Factor>& v) {
  if (!f.reading() && !v) return f.put(name, nullptr);
  if (f.reading() && !f.get(name)) return;
  Factor value = v.value_or(Factor(0.0));
  factor_field(f, name, value);
  v = value;
}
struct AutoContrastArgs {
  AutoContrastOptions o;
  void fields(Fields& f) {
    value_range_field(f, o.value_range);
    f("name", o.name);
  }
  Layer make(Site site) const { return AutoContrast(o, site); }
};
struct RandomErasingArgs {
  Factor factor = {1, 1};
  RandomErasingOptions o;
  void fields(Fields& f) {
    factor_field(f, "factor", factor);
    factor_field(f, "scale", o.scale);
    f("fill_value", o.fill_value);
    value_range_field(f, o.value_range);
    f("seed", o.seed);
    f("name", o.name);
  }
  Layer make(Site site) const { return RandomErasing(factor, o, site); }
};
struct RandomGaussianBlurArgs {
  Factor factor = {1, 1};
  RandomGaussianBlurOptions o;
  void fields(Fields& f) {
    factor_field(f, "factor", factor);
    f("kernel_size", o.kernel_size);
    factor_field(f, "sigma", o.sigma);
    value_range_field(f, o.value_range);
    f("seed", o.seed);
    f("name", o.name);
  }
  Layer make(Site site) const { return RandomGaussianBlur(factor, o, site); }
};
struct RandomColorJitterArgs {
  RandomColorJitterOptions o;
  void fields(Fields& f) {
    value_range_field(f, o.value_range);
    factor_field_or_null(f, "brightness_factor", o.brightness_factor);
    factor_field_or_null(f, "contrast_factor", o.contrast_factor);
    factor_field_or_null(f, "saturation_factor", o.saturation_factor);
    factor_field_or_null(f, "hue_factor", o.hue_factor);
    f("seed", o.seed);
    f("name", o.name);
  }
  Layer make(Site site) const { return RandomColorJitter(o, site); }
};

}  // namespace

AutoContrast::AutoContrast(AutoContrastOptions o, Site site)
    : Layer(make_layer<AutoContrastBase>(o, site)) {
  describe(*this, AutoContrastArgs{std::move(o)});
}
RandomErasing::RandomErasing(Factor f, RandomErasingOptions o, Site site)
    : Layer(make_layer<ErasingBase>(f, o, site)) {
  describe(*this, RandomErasingArgs{f, std::move(o)});
}
RandomGaussianBlur::RandomGaussianBlur(Factor f, RandomGaussianBlurOptions o,
                                       Site site)
    : Layer(make_layer<GaussianBlurBase>(f, o, site)) {
  describe(*this, RandomGaussianBlurArgs{f, std::move(o)});
}
RandomColorJitter::RandomColorJitter(RandomColorJitterOptions o, Site site)
    : Layer(make_layer<ColorJitterBase>(o, site)) {
  describe(*this, RandomColorJitterArgs{std::move(o)});
}

void add_erasing_classes(Classes& c);
void add_erasing_classes(Classes& c) {
  c.layers["AutoContrast"] = &layer_of<AutoContrastArgs>;
  c.layers["RandomErasing"] = &layer_of<RandomErasingArgs>;
  c.layers["RandomGaussianBlur"] = &layer_of<RandomGaussianBlurArgs>;
  c.layers["RandomColorJitter"] = &layer_of<RandomColorJitterArgs>;
}

}  // namespace berth::keras
