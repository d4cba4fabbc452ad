// RMSNormalization.

#include "berth/keras/core_layers.h"
#include "berth/ops/nn.h"
#include "keras/layers/axes_last.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class RMSNormalizationBase final : public LayerBase {
 public:
  RMSNormalizationBase(const RMSNormalizationOptions& o, Site site)
      : LayerBase("RMSNormalization", o.name, site),
        epsilon_(o.epsilon),
        axis_(o.axis) {
    state().casts.weights = false;
    if (!(epsilon_ > 0)) {
      fail_in(state(), "RMSNormalization: epsilon is {}; expected more than 0",
              epsilon_);
    }
  }
  void build(const std::vector<Shape>& inputs) override {
    const AxesLast axis(state(), {axis_}, inputs[0].rank());
    scale_ = add_weight(
        "scale", {known_channels(state(), axis.moved(inputs[0]))}, "ones");
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    const AxesLast axis(state(), {axis_}, x.rank());
    const Tensor moved = axis.to(x);
    check_channels(state(), moved, scale_.shape()[0]);
    return {
        axis.from(nn::rms_norm(moved, scale_.value(site()), epsilon_, site()))};
  }

 private:
  const double epsilon_;
  const int64_t axis_;
  Variable scale_;
};
void rms_normalization_fields(Fields& f, RMSNormalizationOptions& o) {
  axis_field(f, o.axis);
  f("epsilon", o.epsilon);
}

}  // namespace

RMSNormalization::RMSNormalization(RMSNormalizationOptions o, Site site)
    : Layer(described<RMSNormalizationBase, rms_normalization_fields>(
          site, std::move(o))) {}

void add_rms_normalization_classes(Classes& c) {
  c.layers["RMSNormalization"] =
      &layer_of<RMSNormalization, rms_normalization_fields>;
}

}  // namespace berth::keras
