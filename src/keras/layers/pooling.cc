// Pools of images and sequences.

#include <algorithm>

#include "berth/keras/image_layers.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class PoolingBase final : public LayerBase {
 public:
  PoolingBase(const char* type, bool max, Size2D size,
              const Pooling2DOptions& o, Site site)
      : LayerBase(type, o.name, site), max_(max) {
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

class Pooling1DBase final : public LayerBase {
 public:
  Pooling1DBase(const char* type, bool max, int64_t size,
                const Pooling1DOptions& o, Site site)
      : LayerBase(type, o.name, site), max_(max) {
    const int64_t strides = o.strides.value_or(size);
    check_positive(state(), "pool_size", size);
    check_positive(state(), "strides", strides);
    op_ = {.ksize = size,
           .strides = strides,
           .padding = padding_of(state(), o.padding)};
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x =
        input_of_rank(state(), inputs, 3, "[batch, steps, channels]");
    return {max_ ? nn::max_pool1d(x, op_, site())
                 : nn::avg_pool1d(x, op_, site())};
  }

 private:
  const bool max_;
  nn::Pool1DOptions op_;
};

template <class Pooling>
struct Pooling2DArgs {
  Size2D pool_size = 2;
  Pooling2DOptions o;
  void fields(Fields& f) {
    f("pool_size", pool_size);
    f("strides", o.strides);
    f("padding", o.padding);
    f("name", o.name);
  }
  Layer make(Site site) const { return Pooling(pool_size, o, site); }
};
template <class Pooling>
struct Pooling1DArgs {
  int64_t pool_size = 2;
  Pooling1DOptions o;
  void fields(Fields& f) {
    f.one("pool_size", pool_size);
    f.one("strides", o.strides);
    f("padding", o.padding);
    f("name", o.name);
  }
  Layer make(Site site) const { return Pooling(pool_size, o, site); }
};

}  // namespace

MaxPooling2D::MaxPooling2D(Size2D size, Pooling2DOptions o, Site site)
    : Layer(make_layer<PoolingBase>("MaxPooling2D", true, size, o, site)) {
  describe(*this, Pooling2DArgs<MaxPooling2D>{size, std::move(o)});
}
AveragePooling2D::AveragePooling2D(Size2D size, Pooling2DOptions o, Site site)
    : Layer(make_layer<PoolingBase>("AveragePooling2D", false, size, o, site)) {
  describe(*this, Pooling2DArgs<AveragePooling2D>{size, std::move(o)});
}
MaxPooling1D::MaxPooling1D(int64_t size, Pooling1DOptions o, Site site)
    : Layer(make_layer<Pooling1DBase>("MaxPooling1D", true, size, o, site)) {
  describe(*this, Pooling1DArgs<MaxPooling1D>{size, std::move(o)});
}
AveragePooling1D::AveragePooling1D(int64_t size, Pooling1DOptions o, Site site)
    : Layer(
          make_layer<Pooling1DBase>("AveragePooling1D", false, size, o, site)) {
  describe(*this, Pooling1DArgs<AveragePooling1D>{size, std::move(o)});
}

void add_pooling_classes(Classes& c);
void add_pooling_classes(Classes& c) {
  c.layers["MaxPooling2D"] = &layer_of<Pooling2DArgs<MaxPooling2D>>;
  c.layers["AveragePooling2D"] = &layer_of<Pooling2DArgs<AveragePooling2D>>;
  c.layers["MaxPooling1D"] = &layer_of<Pooling1DArgs<MaxPooling1D>>;
  c.layers["AveragePooling1D"] = &layer_of<Pooling1DArgs<AveragePooling1D>>;
}

}  // namespace berth::keras
