// Convolutions of each channel, alone or followed by a mix of channels.

#include "berth/keras/image_layers.h"
#include "berth/ops/nn.h"
#include "keras/classes.h"
#include "keras/layers/conv_layer.h"

namespace berth::keras {

namespace {

class DepthwiseBase final : public ConvLayer {
 public:
  // `filters` 0: channels are not mixed.
  DepthwiseBase(const char* type, int64_t filters, Size2D size,
                const SeparableConv2DOptions& o, Site site)
      : ConvLayer(type, o.name,
                  {2, o.activation, o.use_bias, o.bias_initializer}, site),
        filters_(filters),
        size_(size),
        o_(o) {
    check_positive(state(), "depth_multiplier", o.depth_multiplier);
    check_sizes("kernel_size", size_);
    check_sizes("strides", o.strides);
    check_sizes("dilation_rate", o.dilation_rate);
    op_ = {.strides = list(o.strides),
           .padding = padding_of(state(), o.padding),
           .dilations = list(o.dilation_rate)};
  }

 protected:
  int64_t make_kernels(int64_t channels) override {
    const int64_t m = o_.depth_multiplier;
    depthwise_ = add_weight("depthwise_kernel", {size_.h, size_.w, channels, m},
                            o_.depthwise_initializer);
    if (filters_ == 0) return channels * m;
    pointwise_ = add_weight("pointwise_kernel", {1, 1, channels * m, filters_},
                            o_.pointwise_initializer);
    return filters_;
  }

  Tensor convolve(const Tensor& x) const override {
    const Tensor y =
        nn::depthwise_conv2d(x, depthwise_.value(site()), op_, site());
    return filters_ == 0 ? y
                         : nn::conv2d(y, pointwise_.value(site()), {}, site());
  }

 private:
  const int64_t filters_;
  const Size2D size_;
  const SeparableConv2DOptions o_;
  nn::Conv2DOptions op_;
  Variable depthwise_, pointwise_;
};

Layer depthwise(Size2D size, const DepthwiseConv2DOptions& o, Site site) {
  const SeparableConv2DOptions options{
      .depth_multiplier = o.depth_multiplier,
      .activation = o.activation,
      .padding = o.padding,
      .strides = o.strides,
      .dilation_rate = o.dilation_rate,
      .use_bias = o.use_bias,
      .depthwise_initializer = o.depthwise_initializer,
      .bias_initializer = o.bias_initializer,
      .name = o.name};
  return make_layer<DepthwiseBase>("DepthwiseConv2D", 0, size, options, site);
}

template <class Options>
void depthwise_fields(Fields& f, Size2D& kernel_size, Options& o) {
  f.must("kernel_size", kernel_size);
  f("strides", o.strides);
  f("padding", o.padding);
  f("depth_multiplier", o.depth_multiplier);
  f("dilation_rate", o.dilation_rate);
  f.activation("activation", o.activation);
  f("use_bias", o.use_bias);
  f("depthwise_initializer", o.depthwise_initializer);
  f("bias_initializer", o.bias_initializer);
  f("name", o.name);
}
struct DepthwiseConv2DArgs {
  Size2D kernel_size = 0;
  DepthwiseConv2DOptions o;
  void fields(Fields& f) { depthwise_fields(f, kernel_size, o); }
  Layer make(Site site) const { return DepthwiseConv2D(kernel_size, o, site); }
};
struct SeparableConv2DArgs {
  int64_t filters = 0;
  Size2D kernel_size = 0;
  SeparableConv2DOptions o;
  void fields(Fields& f) {
    f.must("filters", filters);
    depthwise_fields(f, kernel_size, o);
    f("pointwise_initializer", o.pointwise_initializer);
  }
  Layer make(Site site) const {
    return SeparableConv2D(filters, kernel_size, o, site);
  }
};

}  // namespace

DepthwiseConv2D::DepthwiseConv2D(Size2D size, DepthwiseConv2DOptions o,
                                 Site site)
    : Layer(depthwise(size, o, site)) {
  describe(*this, DepthwiseConv2DArgs{size, std::move(o)});
}

SeparableConv2D::SeparableConv2D(int64_t filters, Size2D size,
                                 SeparableConv2DOptions o, Site site)
    : Layer(make_layer<DepthwiseBase>("SeparableConv2D", filters, size, o,
                                      site)) {
  check_positive(base()->state(), "filters", filters);
  describe(*this, SeparableConv2DArgs{filters, size, std::move(o)});
}

void add_depthwise_conv_classes(Classes& c);
void add_depthwise_conv_classes(Classes& c) {
  c.layers["DepthwiseConv2D"] = &layer_of<DepthwiseConv2DArgs>;
  c.layers["SeparableConv2D"] = &layer_of<SeparableConv2DArgs>;
}

}  // namespace berth::keras
