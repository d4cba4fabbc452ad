// Rescaling.

#include "berth/keras/layers.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class RescalingBase final : public LayerBase {
 public:
  RescalingBase(double scale, const RescalingOptions& o, Site site)
      : LayerBase("Rescaling", o.name, site), scale_(scale), offset_(o.offset) {
    state().casts.inputs = false;
  }

  Tensors call(const Tensors& inputs, bool) override {
    Tensor x = one_input(state(), inputs);
    if (x.dtype() != float32) x = math::cast(x, float32, site());
    x = x * scale_;
    return {offset_ == 0 ? x : x + offset_};
  }

 private:
  const double scale_, offset_;
};

void rescaling_fields(Fields& f, double& scale, RescalingOptions& o) {
  f.must("scale", scale);
  f("offset", o.offset);
}

}  // namespace

Rescaling::Rescaling(double scale, RescalingOptions options, Site site)
    : Layer(described<RescalingBase, rescaling_fields>(site, scale,
                                                       std::move(options))) {}

void add_rescaling_classes(Classes& c) {
  c.layers["Rescaling"] = &layer_of<Rescaling, rescaling_fields>;
}

}  // namespace berth::keras
