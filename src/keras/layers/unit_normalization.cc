// UnitNormalization.

#include "berth/keras/core_layers.h"
#include "berth/ops/math.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class UnitNormalizationBase final : public LayerBase {
 public:
  UnitNormalizationBase(std::vector<int64_t> axis, const NameOptions& o,
                        Site site)
      : LayerBase("UnitNormalization", o.name, site), axis_(std::move(axis)) {
    if (axis_.empty()) fail("UnitNormalization: expected at least one axis");
  }
  Tensors call(const Tensors& x, bool) override {
    return {math::l2_normalize(one_input(state(), x), axis_, 1e-24, site())};
  }

 private:
  const std::vector<int64_t> axis_;
};
void unit_normalization_fields(Fields& f, std::vector<int64_t>& axis,
                               NameOptions&) {
  if (f.reading()) axis = {-1};
  axis_field(f, axis);
}

}  // namespace

UnitNormalization::UnitNormalization(std::vector<int64_t> axis, NameOptions o,
                                     Site site)
    : Layer(described<UnitNormalizationBase, unit_normalization_fields>(
          site, std::move(axis), std::move(o))) {}

void add_unit_normalization_classes(Classes& c) {
  c.layers["UnitNormalization"] =
      &layer_of<UnitNormalization, unit_normalization_fields>;
}

}  // namespace berth::keras
