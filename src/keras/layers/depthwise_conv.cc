// Convolutions of each channel, alone or followed by a mix of channels.

#include "berth/keras/image_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/conv_layer.h"

namespace berth::keras {

namespace {

class DepthwiseBase final : public ConvLayer {
 public:
  // `filters` 0: channels are not mixed.
  DepthwiseBase(const char* type, int dims, int64_t filters, Size2D size,
                const SeparableConv2DOptions& o, Site site)
      : ConvLayer(
            type, o.name,
            {dims, o.activation, o.use_bias, o.bias_initializer,
             o.bias_regularizer, o.activity_regularizer, o.bias_constraint},
            site),
        dims_(dims),
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
    Shape window{size_.h, size_.w, channels, m};
    if (dims_ == 1) window.erase(0);
    depthwise_ =
        add_weight("depthwise_kernel", window, o_.depthwise_initializer,
                   {.regularizer = o_.depthwise_regularizer,
                    .constraint = o_.depthwise_constraint});
    if (filters_ == 0) return channels * m;
    Shape mix{1, 1, channels * m, filters_};
    if (dims_ == 1) mix.erase(0);
    pointwise_ = add_weight("pointwise_kernel", mix, o_.pointwise_initializer,
                            {.regularizer = o_.pointwise_regularizer,
                             .constraint = o_.pointwise_constraint});
    return filters_;
  }

  Tensor convolve(const Tensor& x) const override {
    const Tensor y =
        nn::depthwise_conv2d(as_image(x), as_image(depthwise_), op_, site());
    const Tensor z =
        filters_ == 0 ? y : nn::conv2d(y, as_image(pointwise_), {}, site());
    return dims_ == 1 ? squeeze(z, {1}, site()) : z;
  }

 private:
  // A sequence is an image of one row, whose kernel has one axis less.
  Tensor as_image(const Tensor& x) const {
    return dims_ == 1 ? expand_dims(x, 1, site()) : x;
  }
  Tensor as_image(const Variable& kernel) const {
    const Tensor k = kernel.value(site());
    return dims_ == 1 ? expand_dims(k, 0, site()) : k;
  }

  const int dims_;
  const int64_t filters_;
  const Size2D size_;
  const SeparableConv2DOptions o_;
  nn::Conv2DOptions op_;
  Variable depthwise_, pointwise_;
};

template <class Options, class Size>
SeparableConv2DOptions common(const Options& o, Size strides, Size dilation) {
  return {.depth_multiplier = o.depth_multiplier,
          .activation = o.activation,
          .padding = o.padding,
          .strides = strides,
          .dilation_rate = dilation,
          .use_bias = o.use_bias,
          .depthwise_initializer = o.depthwise_initializer,
          .bias_initializer = o.bias_initializer,
          .depthwise_regularizer = o.depthwise_regularizer,
          .bias_regularizer = o.bias_regularizer,
          .activity_regularizer = o.activity_regularizer,
          .depthwise_constraint = o.depthwise_constraint,
          .bias_constraint = o.bias_constraint,
          .name = o.name};
}

// Both axes of the image have the stride: one row, and equal ones are what
// every backend computes.
Layer depthwise1d(int64_t size, const DepthwiseConv1DOptions& o, Site site) {
  return make_layer<DepthwiseBase>(
      "DepthwiseConv1D", 1, 0, Size2D{1, size},
      common(o, Size2D(o.strides), Size2D{1, o.dilation_rate}), site);
}

Layer separable1d(int64_t filters, int64_t size,
                  const SeparableConv1DOptions& o, Site site) {
  SeparableConv2DOptions image =
      common(o, Size2D(o.strides), Size2D{1, o.dilation_rate});
  image.pointwise_initializer = o.pointwise_initializer;
  image.pointwise_regularizer = o.pointwise_regularizer;
  image.pointwise_constraint = o.pointwise_constraint;
  return make_layer<DepthwiseBase>("SeparableConv1D", 1, filters,
                                   Size2D{1, size}, image, site);
}

template <class Options>
void depthwise_fields(Fields& f, Options& o) {
  f("padding", o.padding);
  f("depth_multiplier", o.depth_multiplier);
  f.activation("activation", o.activation);
  f("use_bias", o.use_bias);
  f("depthwise_initializer", o.depthwise_initializer);
  f("bias_initializer", o.bias_initializer);
  f("depthwise_regularizer", o.depthwise_regularizer);
  f("bias_regularizer", o.bias_regularizer);
  f.unless_none("activity_regularizer", o.activity_regularizer);
  f("depthwise_constraint", o.depthwise_constraint);
  f("bias_constraint", o.bias_constraint);
  f("name", o.name);
}
template <class Options>
void depthwise_image_fields(Fields& f, Size2D& kernel_size, Options& o) {
  f.must("kernel_size", kernel_size);
  f("strides", o.strides);
  f("dilation_rate", o.dilation_rate);
  depthwise_fields(f, o);
}
template <class Options>
void depthwise_steps_fields(Fields& f, int64_t& kernel_size, Options& o) {
  f.one("kernel_size", kernel_size);
  f.one("strides", o.strides);
  f.one("dilation_rate", o.dilation_rate);
  depthwise_fields(f, o);
}
template <class Options>
void pointwise_fields(Fields& f, Options& o) {
  f("pointwise_initializer", o.pointwise_initializer);
  f("pointwise_regularizer", o.pointwise_regularizer);
  f("pointwise_constraint", o.pointwise_constraint);
}
struct DepthwiseConv1DArgs {
  int64_t kernel_size = 0;
  DepthwiseConv1DOptions o;
  void fields(Fields& f) { depthwise_steps_fields(f, kernel_size, o); }
  Layer make(Site site) const { return DepthwiseConv1D(kernel_size, o, site); }
};
struct SeparableConv1DArgs {
  int64_t filters = 0;
  int64_t kernel_size = 0;
  SeparableConv1DOptions o;
  void fields(Fields& f) {
    f.must("filters", filters);
    depthwise_steps_fields(f, kernel_size, o);
    pointwise_fields(f, o);
  }
  Layer make(Site site) const {
    return SeparableConv1D(filters, kernel_size, o, site);
  }
};
struct DepthwiseConv2DArgs {
  Size2D kernel_size = 0;
  DepthwiseConv2DOptions o;
  void fields(Fields& f) { depthwise_image_fields(f, kernel_size, o); }
  Layer make(Site site) const { return DepthwiseConv2D(kernel_size, o, site); }
};
struct SeparableConv2DArgs {
  int64_t filters = 0;
  Size2D kernel_size = 0;
  SeparableConv2DOptions o;
  void fields(Fields& f) {
    f.must("filters", filters);
    depthwise_image_fields(f, kernel_size, o);
    pointwise_fields(f, o);
  }
  Layer make(Site site) const {
    return SeparableConv2D(filters, kernel_size, o, site);
  }
};

}  // namespace

DepthwiseConv2D::DepthwiseConv2D(Size2D size, DepthwiseConv2DOptions o,
                                 Site site)
    : Layer(make_layer<DepthwiseBase>("DepthwiseConv2D", 2, 0, size,
                                      common(o, o.strides, o.dilation_rate),
                                      site)) {
  describe(*this, DepthwiseConv2DArgs{size, std::move(o)});
}
DepthwiseConv1D::DepthwiseConv1D(int64_t size, DepthwiseConv1DOptions o,
                                 Site site)
    : Layer(depthwise1d(size, o, site)) {
  describe(*this, DepthwiseConv1DArgs{size, std::move(o)});
}

SeparableConv2D::SeparableConv2D(int64_t filters, Size2D size,
                                 SeparableConv2DOptions o, Site site)
    : Layer(make_layer<DepthwiseBase>("SeparableConv2D", 2, filters, size, o,
                                      site)) {
  check_positive(base()->state(), "filters", filters);
  describe(*this, SeparableConv2DArgs{filters, size, std::move(o)});
}

void add_depthwise_conv_classes(Classes& c);
void add_depthwise_conv_classes(Classes& c) {
  c.layers["DepthwiseConv1D"] = &layer_of<DepthwiseConv1DArgs>;
  c.layers["SeparableConv1D"] = &layer_of<SeparableConv1DArgs>;
  c.layers["DepthwiseConv2D"] = &layer_of<DepthwiseConv2DArgs>;
  c.layers["SeparableConv2D"] = &layer_of<SeparableConv2DArgs>;
}
SeparableConv1D::SeparableConv1D(int64_t filters, int64_t size,
                                 SeparableConv1DOptions o, Site site)
    : Layer(separable1d(filters, size, o, site)) {
  check_positive(base()->state(), "filters", filters);
  describe(*this, SeparableConv1DArgs{filters, size, std::move(o)});
}

}  // namespace berth::keras
