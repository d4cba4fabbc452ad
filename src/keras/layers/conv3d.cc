// Convolutions of volumes, and pools of them.

#include "berth/ops/conv3d.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/keras/volume_layers.h"
#include "keras/layers/conv_layer.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

std::vector<int64_t> sizes_of(Size3D s) { return {s.d, s.h, s.w}; }
int64_t least(Size3D s) { return std::min({s.d, s.h, s.w}); }

class Conv3DBase final : public ConvLayer {
 public:
  Conv3DBase(const char* type, bool transposed, int64_t filters, Size3D size,
             const Conv3DOptions& o, Site site)
      : ConvLayer(
            type, o.name,
            {3, o.activation, o.use_bias, o.bias_initializer,
             o.bias_regularizer, o.activity_regularizer, o.bias_constraint},
            site),
        transposed_(transposed),
        filters_(filters),
        size_(size),
        o_(o) {
    check_positive(state(), "filters", filters_);
    check_positive(state(), "groups", o.groups);
    check_positive(state(), "kernel_size", least(size));
    check_positive(state(), "strides", least(o.strides));
    check_positive(state(), "dilation_rate", least(o.dilation_rate));
    op_ = {.strides = sizes_of(o.strides),
           .padding = padding_of(state(), o.padding),
           .dilations = sizes_of(o.dilation_rate)};
    if (filters_ % o.groups != 0 || (transposed_ && o.groups != 1)) {
      fail(fmt::format(
          "{}: filters is {}, groups {}; expected {}", type, filters_, o.groups,
          transposed_ ? "groups to be 1" : "a multiple of the groups"));
    }
  }

 protected:
  int64_t make_kernels(int64_t channels) override {
    if (channels % o_.groups != 0) {
      fail(
          fmt::format("{}: the input has {} channels; expected a multiple of "
                      "the {} groups",
                      state().type, channels, o_.groups));
    }
    Shape shape{size_.d, size_.h, size_.w, channels / o_.groups, filters_};
    if (transposed_) std::swap(shape[3], shape[4]);
    kernel_ = add_weight("kernel", shape, o_.kernel_initializer,
                         {.regularizer = o_.kernel_regularizer,
                          .constraint = o_.kernel_constraint});
    return filters_;
  }

  Tensor convolve(const Tensor& x) const override {
    const Tensor kernel = kernel_.value(site());
    return transposed_ ? nn::conv3d_transpose(x, kernel, op_, site())
                       : nn::conv3d(x, kernel, op_, site());
  }

 private:
  const bool transposed_;
  const int64_t filters_;
  const Size3D size_;
  const Conv3DOptions o_;
  nn::Conv3DOptions op_;
  Variable kernel_;
};

class Pooling3DBase final : public LayerBase {
 public:
  Pooling3DBase(bool max, Size3D size, const Pooling3DOptions& o, Site site)
      : LayerBase(max ? "MaxPooling3D" : "AveragePooling3D", o.name, site),
        max_(max) {
    const Size3D strides = o.strides.value_or(size);
    check_positive(state(), "pool_size", least(size));
    check_positive(state(), "strides", least(strides));
    op_ = {.ksize = sizes_of(size),
           .strides = sizes_of(strides),
           .padding = padding_of(state(), o.padding)};
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = input_of_rank(state(), inputs, 5, pixels_form(3));
    return {max_ ? nn::max_pool3d(x, op_, site())
                 : nn::avg_pool3d(x, op_, site())};
  }

 private:
  const bool max_;
  nn::Pool3DOptions op_;
};

template <class Conv>
struct Conv3DArgs {
  int64_t filters = 0;
  Size3D kernel_size = 0;
  Conv3DOptions o;
  void fields(Fields& f) {
    f.must("filters", filters);
    size_field(f, "kernel_size", kernel_size);
    size_field(f, "strides", o.strides);
    size_field(f, "dilation_rate", o.dilation_rate);
    f("padding", o.padding);
    if (f.reading() || o.groups != 1) f("groups", o.groups);
    f.activation("activation", o.activation);
    f("use_bias", o.use_bias);
    f("kernel_initializer", o.kernel_initializer);
    f("bias_initializer", o.bias_initializer);
    kernel_penalty_fields(f, o);
    f("name", o.name);
  }
  Layer make(Site site) const { return Conv(filters, kernel_size, o, site); }
};
template <class Pool>
struct Pool3DArgs {
  Size3D pool_size = 2;
  Pooling3DOptions o;
  void fields(Fields& f) {
    size_field(f, "pool_size", pool_size);
    Size3D strides = o.strides.value_or(pool_size);
    size_field(f, "strides", strides);
    o.strides = strides;
    f("padding", o.padding);
    f("name", o.name);
  }
  Layer make(Site site) const { return Pool(pool_size, o, site); }
};

}  // namespace

Conv3D::Conv3D(int64_t filters, Size3D size, Conv3DOptions o, Site site)
    : Layer(make_layer<Conv3DBase>("Conv3D", false, filters, size, o, site)) {
  describe(*this, Conv3DArgs<Conv3D>{filters, size, std::move(o)});
}
Conv3DTranspose::Conv3DTranspose(int64_t filters, Size3D size, Conv3DOptions o,
                                 Site site)
    : Layer(make_layer<Conv3DBase>("Conv3DTranspose", true, filters, size, o,
                                   site)) {
  describe(*this, Conv3DArgs<Conv3DTranspose>{filters, size, std::move(o)});
}
MaxPooling3D::MaxPooling3D(Size3D size, Pooling3DOptions o, Site site)
    : Layer(make_layer<Pooling3DBase>(true, size, o, site)) {
  describe(*this, Pool3DArgs<MaxPooling3D>{size, std::move(o)});
}
AveragePooling3D::AveragePooling3D(Size3D size, Pooling3DOptions o, Site site)
    : Layer(make_layer<Pooling3DBase>(false, size, o, site)) {
  describe(*this, Pool3DArgs<AveragePooling3D>{size, std::move(o)});
}

void add_conv3d_classes(Classes& c);
void add_conv3d_classes(Classes& c) {
  c.layers["Conv3D"] = &layer_of<Conv3DArgs<Conv3D>>;
  c.layers["Conv3DTranspose"] = &layer_of<Conv3DArgs<Conv3DTranspose>>;
  c.layers["MaxPooling3D"] = &layer_of<Pool3DArgs<MaxPooling3D>>;
  c.layers["AveragePooling3D"] = &layer_of<Pool3DArgs<AveragePooling3D>>;
}

}  // namespace berth::keras
