// Pools over all pixels or steps.

#include <fmt/format.h>

#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"
#include "keras/models/masks.h"

namespace berth::keras {

namespace {

class GlobalPoolingBase final : public LayerBase {
 public:
  GlobalPoolingBase(bool max, int dims, const GlobalPoolingOptions& o,
                    Site site)
      : LayerBase(
            fmt::format("Global{}Pooling{}D", max ? "Max" : "Average", dims),
            o.name, site),
        max_(max),
        dims_(dims) {
    over_.axis.emplace();
    for (int i = 1; i <= dims; ++i) over_.axis->push_back(i);
    over_.keepdims = o.keepdims;
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x =
        input_of_rank(state(), inputs, dims_ + 2, pixels_form(dims_));
    if (const Tensor mask = Masks::of(x);
        mask.defined() && !max_ && dims_ == 1) {
      // The mean of the steps that count.
      const Tensor m =
          expand_dims(math::cast(mask, x.dtype(), site()), -1, site());
      return {math::divide(
          math::reduce_sum(math::multiply(x, m, site()), over_, site()),
          math::reduce_sum(m, over_, site()), site())};
    }
    return {max_ ? math::reduce_max(x, over_, site())
                 : math::reduce_mean(x, over_, site())};
  }

 private:
  const bool max_;
  const int dims_;
  math::ReduceOptions over_;
};

void global_pooling_fields(Fields& f, GlobalPoolingOptions& o) {
  f("keepdims", o.keepdims);
}

Layer global_pooling(bool max, int dims, GlobalPoolingOptions o, Site site) {
  const Layer layer = make_layer<GlobalPoolingBase>(max, dims, o, site);
  describe<global_pooling_fields>(layer, std::move(o));
  return layer;
}

}  // namespace

GlobalMaxPooling1D::GlobalMaxPooling1D(GlobalPoolingOptions o, Site site)
    : Layer(global_pooling(true, 1, std::move(o), site)) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(GlobalPoolingOptions o, Site site)
    : Layer(global_pooling(true, 2, std::move(o), site)) {}
GlobalAveragePooling1D::GlobalAveragePooling1D(GlobalPoolingOptions o,
                                               Site site)
    : Layer(global_pooling(false, 1, std::move(o), site)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(GlobalPoolingOptions o,
                                               Site site)
    : Layer(global_pooling(false, 2, std::move(o), site)) {}

GlobalMaxPooling3D::GlobalMaxPooling3D(GlobalPoolingOptions o, Site site)
    : Layer(global_pooling(true, 3, std::move(o), site)) {}
GlobalAveragePooling3D::GlobalAveragePooling3D(GlobalPoolingOptions o,
                                               Site site)
    : Layer(global_pooling(false, 3, std::move(o), site)) {}

void add_global_pooling_classes(Classes& c) {
  c.layers["GlobalMaxPooling1D"] =
      &layer_of<GlobalMaxPooling1D, global_pooling_fields>;
  c.layers["GlobalMaxPooling2D"] =
      &layer_of<GlobalMaxPooling2D, global_pooling_fields>;
  c.layers["GlobalAveragePooling1D"] =
      &layer_of<GlobalAveragePooling1D, global_pooling_fields>;
  c.layers["GlobalAveragePooling2D"] =
      &layer_of<GlobalAveragePooling2D, global_pooling_fields>;
  c.layers["GlobalMaxPooling3D"] =
      &layer_of<GlobalMaxPooling3D, global_pooling_fields>;
  c.layers["GlobalAveragePooling3D"] =
      &layer_of<GlobalAveragePooling3D, global_pooling_fields>;
}

}  // namespace berth::keras
