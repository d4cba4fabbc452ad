// Convolutions of each channel, alone or followed by a mix of channels.

#include "berth/keras/image_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/conv_layer.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

using Sizes = std::vector<int64_t>;

class DepthwiseBase final : public ConvLayer {
 public:
  // `filters` 0: channels are not mixed.
  template <class Size, class Options>
  DepthwiseBase(const char* type, int64_t filters, Size size, const Options& o,
                Site site)
      : ConvLayer(type, o.name,
                  {static_cast<int>(lengths_of(size).size()), o.activation,
                   o.use_bias, o.bias_initializer, o.bias_regularizer,
                   o.activity_regularizer, o.bias_constraint},
                  site),
        filters_(filters),
        size_(lengths_of(size)),
        multiplier_(o.depth_multiplier),
        depthwise_{o.depthwise_initializer,
                   {.regularizer = o.depthwise_regularizer,
                    .constraint = o.depthwise_constraint}} {
    Sizes strides = lengths_of(o.strides);
    Sizes dilations = lengths_of(o.dilation_rate);
    check_positive(state(), "depth_multiplier", multiplier_);
    check_sizes("kernel_size", size_);
    check_sizes("strides", strides);
    check_sizes("dilation_rate", dilations);
    if constexpr (requires { o.pointwise_initializer; }) {
      pointwise_ = {o.pointwise_initializer,
                    {.regularizer = o.pointwise_regularizer,
                     .constraint = o.pointwise_constraint}};
    }
    if (size_.size() == 1) {
      // Both axes of the image have the stride: one row, and equal ones are
      // what every backend computes.
      strides.push_back(strides[0]);
      dilations.insert(dilations.begin(), 1);
    }
    op_ = {.strides = strides,
           .padding = padding_of(state(), o.padding),
           .dilations = dilations};
  }

 protected:
  int64_t make_kernels(int64_t channels) override {
    Shape window(size_);
    window.push_back(channels);
    window.push_back(multiplier_);
    depthwise_.value = add_weight("depthwise_kernel", window,
                                  depthwise_.initializer, depthwise_.options);
    const int64_t outputs = channels * multiplier_;
    if (filters_ == 0) return outputs;
    Shape mix{1, 1, outputs, filters_};
    if (size_.size() == 1) mix.erase(0);
    pointwise_.value = add_weight("pointwise_kernel", mix,
                                  pointwise_.initializer, pointwise_.options);
    return filters_;
  }

  Tensor convolve(const Tensor& x) const override {
    const Tensor y = nn::depthwise_conv2d(
        as_image(x, 1), as_image(depthwise_.value.value(site()), 0), op_,
        site());
    const Tensor z =
        filters_ == 0
            ? y
            : nn::conv2d(y, as_image(pointwise_.value.value(site()), 0), {},
                         site());
    return size_.size() == 1 ? squeeze(z, {1}, site()) : z;
  }

 private:
  struct Kernel {
    Initializer initializer = "zeros";
    WeightOptions options;
    Variable value;
  };
  // A sequence is an image of one row, whose kernel has one axis less.
  Tensor as_image(const Tensor& x, int64_t axis) const {
    return size_.size() == 1 ? expand_dims(x, axis, site()) : x;
  }

  const int64_t filters_;
  const Sizes size_;
  const int64_t multiplier_;
  Kernel depthwise_, pointwise_;
  nn::Conv2DOptions op_;
};

template <class Size, class Options>
void depthwise_fields(Fields& f, Size& kernel_size, Options& o) {
  if constexpr (std::is_same_v<Size, Size2D>) {
    f.must("kernel_size", kernel_size);
  } else {
    size_field(f, "kernel_size", kernel_size);
  }
  size_field(f, "strides", o.strides);
  size_field(f, "dilation_rate", o.dilation_rate);
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
}
template <class Size>
void separable_fields(Fields& f, int64_t& filters, Size& kernel_size,
                      SeparableConvOptions<Size>& o) {
  f.must("filters", filters);
  depthwise_fields(f, kernel_size, o);
  f("pointwise_initializer", o.pointwise_initializer);
  f("pointwise_regularizer", o.pointwise_regularizer);
  f("pointwise_constraint", o.pointwise_constraint);
}
constexpr auto* depthwise1d_fields =
    &depthwise_fields<int64_t, DepthwiseConv1DOptions>;
constexpr auto* depthwise2d_fields =
    &depthwise_fields<Size2D, DepthwiseConv2DOptions>;

}  // namespace

DepthwiseConv1D::DepthwiseConv1D(int64_t size, DepthwiseConv1DOptions o,
                                 Site site)
    : Layer(make_layer<DepthwiseBase>("DepthwiseConv1D", 0, size, o, site)) {
  describe<depthwise1d_fields>(*this, size, std::move(o));
}
SeparableConv1D::SeparableConv1D(int64_t filters, int64_t size,
                                 SeparableConv1DOptions o, Site site)
    : Layer(make_layer<DepthwiseBase>("SeparableConv1D", filters, size, o,
                                      site)) {
  check_positive(base()->state(), "filters", filters);
  describe<separable_fields<int64_t>>(*this, filters, size, std::move(o));
}
DepthwiseConv2D::DepthwiseConv2D(Size2D size, DepthwiseConv2DOptions o,
                                 Site site)
    : Layer(make_layer<DepthwiseBase>("DepthwiseConv2D", 0, size, o, site)) {
  describe<depthwise2d_fields>(*this, size, std::move(o));
}
SeparableConv2D::SeparableConv2D(int64_t filters, Size2D size,
                                 SeparableConv2DOptions o, Site site)
    : Layer(make_layer<DepthwiseBase>("SeparableConv2D", filters, size, o,
                                      site)) {
  check_positive(base()->state(), "filters", filters);
  describe<separable_fields<Size2D>>(*this, filters, size, std::move(o));
}

void add_depthwise_conv_classes(Classes& c) {
  c.layers["DepthwiseConv1D"] = &layer_of<DepthwiseConv1D, depthwise1d_fields>;
  c.layers["SeparableConv1D"] =
      &layer_of<SeparableConv1D, separable_fields<int64_t>>;
  c.layers["DepthwiseConv2D"] = &layer_of<DepthwiseConv2D, depthwise2d_fields>;
  c.layers["SeparableConv2D"] =
      &layer_of<SeparableConv2D, separable_fields<Size2D>>;
}

}  // namespace berth::keras
