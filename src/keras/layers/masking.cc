// Masking: masks steps of one value.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/layers/rnn.h"
#include "keras/models/masks.h"

namespace berth::keras {

namespace {

class MaskingBase final : public LayerBase {
 public:
  MaskingBase(double value, const MaskingOptions& o, Site site)
      : LayerBase("Masking", o.name, site), value_(value) {}

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = inputs[0];
    if (x.rank() < 2) {
      fail_in(state(),
              "Masking: the input is {}; expected [batch, time, features]",
              x.shape().str());
    }
    return {where(expand_dims(mask(x), -1, site()), x, zeros_like(x, site()),
                  site())};
  }
  Tensors compute_mask(const Tensors& inputs, const Tensors&) override {
    return {mask(inputs[0])};
  }

 private:
  Tensor mask(const Tensor& x) const {
    const Tensor value =
        math::cast(constant(value_, site()), x.dtype(), site());
    return math::reduce_any(math::not_equal(x, value, site()),
                            {.axis = std::vector<int64_t>{-1}}, site());
  }
  const double value_;
};

void masking_fields(Fields& f, double& mask_value, MaskingOptions&) {
  f("mask_value", mask_value);
}

}  // namespace

Masking::Masking(double mask_value, MaskingOptions options, Site site)
    : Layer(described<MaskingBase, masking_fields>(site, mask_value, options)) {
}

void add_masking_classes(Classes& c) {
  c.layers["Masking"] = &layer_of<Masking, masking_fields>;
}

}  // namespace berth::keras
