// Convolutions of each channel, alone or followed by a mix of channels.

#include "berth/keras/image_layers.h"
#include "berth/ops/nn.h"
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

}  // namespace

DepthwiseConv2D::DepthwiseConv2D(Size2D size, DepthwiseConv2DOptions o,
                                 Site site)
    : Layer(depthwise(size, o, site)) {}

SeparableConv2D::SeparableConv2D(int64_t filters, Size2D size,
                                 SeparableConv2DOptions o, Site site)
    : Layer(make_layer<DepthwiseBase>("SeparableConv2D", filters, size, o,
                                      site)) {
  check_positive(base()->state(), "filters", filters);
}

}  // namespace berth::keras
