// AutoContrast.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
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
void auto_contrast_fields(Fields& f, AutoContrastOptions& o) {
  value_range_field(f, o.value_range);
}

}  // namespace

AutoContrast::AutoContrast(AutoContrastOptions o, Site site)
    : Layer(described<AutoContrastBase, auto_contrast_fields>(site,
                                                              std::move(o))) {}
void add_auto_contrast_classes(Classes& c) {
  c.layers["AutoContrast"] = &layer_of<AutoContrast, auto_contrast_fields>;
}

}  // namespace berth::keras
