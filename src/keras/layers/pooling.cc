// Pools of sequences, images and volumes.

#include <algorithm>

#include "berth/keras/volume_layers.h"
#include "berth/ops/conv3d.h"
#include "berth/ops/nn.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

Tensor pooled(bool max, const Tensor& x, const nn::Pool1DOptions& o, Site s) {
  return max ? nn::max_pool1d(x, o, s) : nn::avg_pool1d(x, o, s);
}
Tensor pooled(bool max, const Tensor& x, const nn::PoolOptions& o, Site s) {
  return max ? nn::max_pool2d(x, o, s) : nn::avg_pool2d(x, o, s);
}
Tensor pooled(bool max, const Tensor& x, const nn::Pool3DOptions& o, Site s) {
  return max ? nn::max_pool3d(x, o, s) : nn::avg_pool3d(x, o, s);
}

// By an op with OpOptions.
template <class OpOptions>
class PoolingBase final : public LayerBase {
 public:
  template <class Size>
  PoolingBase(const char* type, bool max, Size size,
              const PoolingOptions<Size>& o, Site site)
      : LayerBase(type, o.name, site),
        max_(max),
        dims_(static_cast<int>(lengths_of(size).size())) {
    const auto sizes = lengths_of(size);
    const auto strides = lengths_of(o.strides.value_or(size));
    check_positive(state(), "pool_size",
                   *std::min_element(sizes.begin(), sizes.end()));
    check_positive(state(), "strides",
                   *std::min_element(strides.begin(), strides.end()));
    if constexpr (std::is_same_v<Size, int64_t>) {
      op_ = {.ksize = sizes[0], .strides = strides[0]};
    } else {
      op_ = {.ksize = sizes, .strides = strides};
    }
    op_.padding = padding_of(state(), o.padding);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x =
        input_of_rank(state(), inputs, dims_ + 2, pixels_form(dims_));
    return {pooled(max_, x, op_, site())};
  }

 private:
  const bool max_;
  const int dims_;
  OpOptions op_;
};

template <class Size>
void pooling_fields(Fields& f, Size& pool_size, PoolingOptions<Size>& o) {
  if (f.reading()) pool_size = 2;
  size_field(f, "pool_size", pool_size);
  if constexpr (std::is_same_v<Size, Size3D>) {
    Size strides = o.strides.value_or(pool_size);
    size_field(f, "strides", strides);
    o.strides = strides;
  } else if constexpr (std::is_same_v<Size, Size2D>) {
    f("strides", o.strides);
  } else {
    f.one("strides", o.strides);
  }
  f("padding", o.padding);
}

template <class OpOptions, class Size>
Layer pooling(const char* type, bool max, Size size, PoolingOptions<Size> o,
              Site site) {
  const Layer layer =
      make_layer<PoolingBase<OpOptions>>(type, max, size, o, site);
  describe<pooling_fields<Size>>(layer, size, std::move(o));
  return layer;
}

}  // namespace

MaxPooling1D::MaxPooling1D(int64_t size, Pooling1DOptions o, Site site)
    : Layer(pooling<nn::Pool1DOptions>("MaxPooling1D", true, size, std::move(o),
                                       site)) {}
AveragePooling1D::AveragePooling1D(int64_t size, Pooling1DOptions o, Site site)
    : Layer(pooling<nn::Pool1DOptions>("AveragePooling1D", false, size,
                                       std::move(o), site)) {}
MaxPooling2D::MaxPooling2D(Size2D size, Pooling2DOptions o, Site site)
    : Layer(pooling<nn::PoolOptions>("MaxPooling2D", true, size, std::move(o),
                                     site)) {}
AveragePooling2D::AveragePooling2D(Size2D size, Pooling2DOptions o, Site site)
    : Layer(pooling<nn::PoolOptions>("AveragePooling2D", false, size,
                                     std::move(o), site)) {}
MaxPooling3D::MaxPooling3D(Size3D size, Pooling3DOptions o, Site site)
    : Layer(pooling<nn::Pool3DOptions>("MaxPooling3D", true, size, std::move(o),
                                       site)) {}
AveragePooling3D::AveragePooling3D(Size3D size, Pooling3DOptions o, Site site)
    : Layer(pooling<nn::Pool3DOptions>("AveragePooling3D", false, size,
                                       std::move(o), site)) {}

void add_pooling_classes(Classes& c) {
  c.layers["MaxPooling1D"] = &layer_of<MaxPooling1D, pooling_fields<int64_t>>;
  c.layers["AveragePooling1D"] =
      &layer_of<AveragePooling1D, pooling_fields<int64_t>>;
  c.layers["MaxPooling2D"] = &layer_of<MaxPooling2D, pooling_fields<Size2D>>;
  c.layers["AveragePooling2D"] =
      &layer_of<AveragePooling2D, pooling_fields<Size2D>>;
  c.layers["MaxPooling3D"] = &layer_of<MaxPooling3D, pooling_fields<Size3D>>;
  c.layers["AveragePooling3D"] =
      &layer_of<AveragePooling3D, pooling_fields<Size3D>>;
}

}  // namespace berth::keras
