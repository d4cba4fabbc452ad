// RandomColorJitter: several changes of colour in turn.

#include "berth/ops/math.h"
#include "keras/layers/augment.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class ColorJitterBase final : public LayerBase {
 public:
  ColorJitterBase(const RandomColorJitterOptions& o, Site site)
      : LayerBase("RandomColorJitter", o.name, site) {
    const RandomColorOptions each{.value_range = o.value_range, .seed = o.seed};
    state().casts.inputs = false;
    if (o.brightness_factor) {
      layers_.push_back(track(RandomBrightness(*o.brightness_factor, each)));
    }
    if (o.contrast_factor) {
      layers_.push_back(track(RandomContrast(*o.contrast_factor, each)));
    }
    if (o.saturation_factor) {
      layers_.push_back(track(RandomSaturation(*o.saturation_factor, each)));
    }
    if (o.hue_factor) layers_.push_back(track(RandomHue(*o.hue_factor, each)));
  }
  Tensors call(const Tensors& x, bool training) override {
    Tensor y = math::cast(one_input(state(), x), float32, site());
    for (const Layer& l : layers_) y = l(y, training);
    return {y};
  }

 private:
  std::vector<Layer> layers_;
};
void factor_field_or_null(Fields& f, const char* name,
                          std::optional<Factor>& v) {
  if (!f.reading() && !v) return f.put(name, nullptr);
  if (f.reading() && !f.get(name)) return;
  Factor value = v.value_or(Factor(0.0));
  factor_field(f, name, value);
  v = value;
}
void random_color_jitter_fields(Fields& f, RandomColorJitterOptions& o) {
  value_range_field(f, o.value_range);
  factor_field_or_null(f, "brightness_factor", o.brightness_factor);
  factor_field_or_null(f, "contrast_factor", o.contrast_factor);
  factor_field_or_null(f, "saturation_factor", o.saturation_factor);
  factor_field_or_null(f, "hue_factor", o.hue_factor);
  f("seed", o.seed);
}

}  // namespace

RandomColorJitter::RandomColorJitter(RandomColorJitterOptions o, Site site)
    : Layer(described<ColorJitterBase, random_color_jitter_fields>(
          site, std::move(o))) {}
void add_random_color_jitter_classes(Classes& c) {
  c.layers["RandomColorJitter"] =
      &layer_of<RandomColorJitter, random_color_jitter_fields>;
}

}  // namespace berth::keras
