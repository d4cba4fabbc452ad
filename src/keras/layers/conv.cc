// Convolutions and their transposes, of sequences, images and volumes.

#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/conv3d.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/conv_layer.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

using Sizes = std::vector<int64_t>;

class ConvBase final : public ConvLayer {
 public:
  template <class Size, class Options>
  ConvBase(const char* type, bool transposed, int64_t filters, Size size,
           const Options& o, Site site)
      : ConvLayer(type, o.name,
                  {static_cast<int>(lengths_of(size).size()), o.activation,
                   o.use_bias, o.bias_initializer, o.bias_regularizer,
                   o.activity_regularizer, o.bias_constraint},
                  site),
        transposed_(transposed),
        filters_(filters),
        size_(lengths_of(size)),
        groups_(o.groups),
        initializer_(o.kernel_initializer),
        weight_{.regularizer = o.kernel_regularizer,
                .constraint = o.kernel_constraint} {
    const Sizes strides = lengths_of(o.strides);
    const Sizes dilations = lengths_of(o.dilation_rate);
    check_positive(state(), "filters", filters_);
    check_positive(state(), "groups", groups_);
    check_sizes("kernel_size", size_);
    check_sizes("strides", strides);
    check_sizes("dilation_rate", dilations);
    op_.strides = of_pixels(strides);
    op_.dilations = of_pixels(dilations);
    if (size_.size() == 1 && !transposed_ && o.padding == "causal") {
      op_.padding = "EXPLICIT";
      op_.explicit_paddings = {0, 0, (size_[0] - 1) * dilations[0], 0};
    } else {
      op_.padding = padding_of(state(), o.padding);
    }
    volume_op_ = {.strides = op_.strides,
                  .padding = op_.padding,
                  .dilations = op_.dilations};
    if (filters_ % groups_ != 0 || (transposed_ && groups_ != 1)) {
      fail_in(state(), "{}: filters is {}, groups {}; expected {}", type,
              filters_, groups_,
              transposed_ ? "groups to be 1" : "a multiple of the groups");
    }
  }

 protected:
  int64_t make_kernels(int64_t channels) override {
    if (channels % groups_ != 0) {
      fail_in(state(),
              "{}: the input has {} channels; expected a multiple of "
              "the {} groups",
              state().type, channels, groups_);
    }
    Shape shape(size_);
    shape.push_back(transposed_ ? filters_ : channels / groups_);
    shape.push_back(transposed_ ? channels / groups_ : filters_);
    kernel_ = add_weight("kernel", shape, initializer_, weight_);
    return filters_;
  }

  Tensor convolve(const Tensor& x) const override {
    const Tensor kernel = kernel_.value(site());
    if (size_.size() == 3) {
      return transposed_ ? nn::conv3d_transpose(x, kernel, volume_op_, site())
                         : nn::conv3d(x, kernel, volume_op_, site());
    }
    if (size_.size() == 2) return of_images(x, kernel);
    return squeeze(
        of_images(expand_dims(x, 1, site()), expand_dims(kernel, 0, site())),
        {1}, site());
  }

 private:
  // A sequence is an image of one row, whose kernel has one axis less.
  static Sizes of_pixels(Sizes sizes) {
    if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
    return sizes;
  }
  Tensor of_images(const Tensor& x, const Tensor& kernel) const {
    return transposed_ ? nn::conv2d_transpose(x, kernel, {}, op_, site())
                       : nn::conv2d(x, kernel, op_, site());
  }

  const bool transposed_;
  const int64_t filters_;
  const Sizes size_;
  const int64_t groups_;
  const Initializer initializer_;
  const WeightOptions weight_;
  nn::Conv2DOptions op_;
  nn::Conv3DOptions volume_op_;
  Variable kernel_;
};

template <class Size, class Options>
void conv_fields(Fields& f, int64_t& filters, Size& kernel_size, Options& o) {
  f.must("filters", filters);
  if constexpr (std::is_same_v<Size, Size2D>) {
    f.must("kernel_size", kernel_size);
  } else {
    size_field(f, "kernel_size", kernel_size);
  }
  size_field(f, "strides", o.strides);
  size_field(f, "dilation_rate", o.dilation_rate);
  f("padding", o.padding);
  // Transposed ones have none in Keras.
  if (f.reading() || o.groups != 1) f("groups", o.groups);
  f.activation("activation", o.activation);
  f("use_bias", o.use_bias);
  f("kernel_initializer", o.kernel_initializer);
  f("bias_initializer", o.bias_initializer);
  kernel_penalty_fields(f, o);
}
template <class Size, class Options>
Layer conv(const char* type, bool transposed, int64_t filters, Size size,
           Options o, Site site) {
  const Layer layer =
      make_layer<ConvBase>(type, transposed, filters, size, o, site);
  describe<&conv_fields<Size, Options>>(layer, filters, size, std::move(o));
  return layer;
}
constexpr auto* conv1d_fields = &conv_fields<int64_t, Conv1DOptions>;
constexpr auto* conv2d_fields = &conv_fields<Size2D, Conv2DOptions>;
constexpr auto* conv3d_fields = &conv_fields<Size3D, Conv3DOptions>;

}  // namespace

Conv1D::Conv1D(int64_t filters, int64_t size, Conv1DOptions o, Site site)
    : Layer(conv("Conv1D", false, filters, size, std::move(o), site)) {}
Conv1DTranspose::Conv1DTranspose(int64_t filters, int64_t size, Conv1DOptions o,
                                 Site site)
    : Layer(conv("Conv1DTranspose", true, filters, size, std::move(o), site)) {}
Conv2D::Conv2D(int64_t filters, Size2D size, Conv2DOptions o, Site site)
    : Layer(conv("Conv2D", false, filters, size, std::move(o), site)) {}
Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2D size, Conv2DOptions o,
                                 Site site)
    : Layer(conv("Conv2DTranspose", true, filters, size, std::move(o), site)) {}
Conv3D::Conv3D(int64_t filters, Size3D size, Conv3DOptions o, Site site)
    : Layer(conv("Conv3D", false, filters, size, std::move(o), site)) {}
Conv3DTranspose::Conv3DTranspose(int64_t filters, Size3D size, Conv3DOptions o,
                                 Site site)
    : Layer(conv("Conv3DTranspose", true, filters, size, std::move(o), site)) {}

void add_conv_classes(Classes& c) {
  c.layers["Conv1D"] = &layer_of<Conv1D, conv1d_fields>;
  c.layers["Conv1DTranspose"] = &layer_of<Conv1DTranspose, conv1d_fields>;
  c.layers["Conv2D"] = &layer_of<Conv2D, conv2d_fields>;
  c.layers["Conv2DTranspose"] = &layer_of<Conv2DTranspose, conv2d_fields>;
  c.layers["Conv3D"] = &layer_of<Conv3D, conv3d_fields>;
  c.layers["Conv3DTranspose"] = &layer_of<Conv3DTranspose, conv3d_fields>;
}

}  // namespace berth::keras
