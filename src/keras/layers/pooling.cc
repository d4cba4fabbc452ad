#include <algorithm>

#include "berth/keras/layers.h"
#include "berth/ops/nn.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class PoolingBase final : public LayerBase {
 public:
  PoolingBase(bool max, Size2D size, const Pooling2DOptions& o, Site site)
      : LayerBase(max ? "MaxPooling2D" : "AveragePooling2D", o.name, site),
        max_(max) {
    const Size2D strides = o.strides.value_or(size);
    check_positive(state(), "pool_size", std::min(size.h, size.w));
    check_positive(state(), "strides", std::min(strides.h, strides.w));
    op_ = {.ksize = {size.h, size.w},
           .strides = {strides.h, strides.w},
           .padding = padding_of(state(), o.padding)};
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x =
        input_of_rank(state(), inputs, 4, "[batch, height, width, channels]");
    return {max_ ? nn::max_pool2d(x, op_, site())
                 : nn::avg_pool2d(x, op_, site())};
  }

 private:
  const bool max_;
  nn::PoolOptions op_;
};

}  // namespace

MaxPooling2D::MaxPooling2D(Size2D pool_size, Pooling2DOptions options,
                           Site site)
    : Layer(std::make_shared<PoolingBase>(true, pool_size, options, site)) {}
AveragePooling2D::AveragePooling2D(Size2D pool_size, Pooling2DOptions options,
                                   Site site)
    : Layer(std::make_shared<PoolingBase>(false, pool_size, options, site)) {}

}  // namespace berth::keras
