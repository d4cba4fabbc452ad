// Convolutions and their transposes, of images and sequences.

#include <fmt/format.h>

#include "berth/keras/image_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/conv_layer.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

// A sequence is an image of one row, whose kernel has one axis less.
class ConvBase final : public ConvLayer {
 public:
  ConvBase(const char* type, int dims, bool transposed, int64_t filters,
           Size2D size, const Conv2DOptions& o, Site site)
      : ConvLayer(
            type, o.name,
            {dims, o.activation, o.use_bias, o.bias_initializer,
             o.bias_regularizer, o.activity_regularizer, o.bias_constraint},
            site),
        dims_(dims),
        transposed_(transposed),
        filters_(filters),
        size_(size),
        groups_(o.groups),
        initializer_(o.kernel_initializer),
        weight_{.regularizer = o.kernel_regularizer,
                .constraint = o.kernel_constraint} {
    check_positive(state(), "filters", filters_);
    check_positive(state(), "groups", groups_);
    check_sizes("kernel_size", size_);
    check_sizes("strides", o.strides);
    check_sizes("dilation_rate", o.dilation_rate);
    op_.strides = list(o.strides);
    op_.dilations = list(o.dilation_rate);
    if (dims_ == 1 && !transposed_ && o.padding == "causal") {
      op_.padding = "EXPLICIT";
      op_.explicit_paddings = {0, 0, (size.w - 1) * o.dilation_rate.w, 0};
    } else {
      op_.padding = padding_of(state(), o.padding);
    }
    if (filters_ % groups_ != 0 || (transposed_ && groups_ != 1)) {
      fail(fmt::format(
          "{}: filters is {}, groups {}; expected {}", type, filters_, groups_,
          transposed_ ? "groups to be 1" : "a multiple of the groups"));
    }
  }

 protected:
  int64_t make_kernels(int64_t channels) override {
    if (channels % groups_ != 0) {
      fail(
          fmt::format("{}: the input has {} channels; expected a multiple of "
                      "the {} groups",
                      state().type, channels, groups_));
    }
    Shape shape{size_.h, size_.w, channels / groups_, filters_};
    if (transposed_) std::swap(shape[2], shape[3]);
    if (dims_ == 1) shape.erase(0);
    kernel_ = add_weight("kernel", shape, initializer_, weight_);
    return filters_;
  }

  Tensor convolve(const Tensor& x) const override {
    const Tensor kernel = kernel_.value(site());
    if (dims_ == 2) return of_images(x, kernel);
    return squeeze(
        of_images(expand_dims(x, 1, site()), expand_dims(kernel, 0, site())),
        {1}, site());
  }

 private:
  Tensor of_images(const Tensor& x, const Tensor& kernel) const {
    return transposed_ ? nn::conv2d_transpose(x, kernel, {}, op_, site())
                       : nn::conv2d(x, kernel, op_, site());
  }

  const int dims_;
  const bool transposed_;
  const int64_t filters_;
  const Size2D size_;
  const int64_t groups_;
  const Initializer initializer_;
  const WeightOptions weight_;
  nn::Conv2DOptions op_;
  Variable kernel_;
};

Layer of_sequences(const char* type, bool transposed, int64_t filters,
                   int64_t size, const Conv1DOptions& o, Site site) {
  const Conv2DOptions image{.activation = o.activation,
                            .padding = o.padding,
                            .strides = {1, o.strides},
                            .dilation_rate = {1, o.dilation_rate},
                            .use_bias = o.use_bias,
                            .kernel_initializer = o.kernel_initializer,
                            .bias_initializer = o.bias_initializer,
                            .kernel_regularizer = o.kernel_regularizer,
                            .bias_regularizer = o.bias_regularizer,
                            .activity_regularizer = o.activity_regularizer,
                            .kernel_constraint = o.kernel_constraint,
                            .bias_constraint = o.bias_constraint,
                            .name = o.name,
                            .groups = o.groups};
  return make_layer<ConvBase>(type, 1, transposed, filters, Size2D{1, size},
                              image, site);
}

// Keras writes every size of a sequence as a list of one.
template <class Options>
void conv_fields(Fields& f, Options& o) {
  f("padding", o.padding);
  // Transposed ones have none in Keras.
  if (f.reading() || o.groups != 1) f("groups", o.groups);
  f.activation("activation", o.activation);
  f("use_bias", o.use_bias);
  f("kernel_initializer", o.kernel_initializer);
  f("bias_initializer", o.bias_initializer);
  kernel_penalty_fields(f, o);
  f("name", o.name);
}
template <class Conv>
struct Conv2DArgs {
  int64_t filters = 0;
  Size2D kernel_size = 0;
  Conv2DOptions o;
  void fields(Fields& f) {
    f.must("filters", filters);
    f.must("kernel_size", kernel_size);
    f("strides", o.strides);
    f("dilation_rate", o.dilation_rate);
    conv_fields(f, o);
  }
  Layer make(Site site) const { return Conv(filters, kernel_size, o, site); }
};
template <class Conv>
struct Conv1DArgs {
  int64_t filters = 0;
  int64_t kernel_size = 0;
  Conv1DOptions o;
  void fields(Fields& f) {
    f.must("filters", filters);
    f.one("kernel_size", kernel_size);
    f.one("strides", o.strides);
    f.one("dilation_rate", o.dilation_rate);
    conv_fields(f, o);
  }
  Layer make(Site site) const { return Conv(filters, kernel_size, o, site); }
};

}  // namespace

Conv2D::Conv2D(int64_t filters, Size2D size, Conv2DOptions o, Site site)
    : Layer(make_layer<ConvBase>("Conv2D", 2, false, filters, size, o, site)) {
  describe(*this, Conv2DArgs<Conv2D>{filters, size, std::move(o)});
}
Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2D size, Conv2DOptions o,
                                 Site site)
    : Layer(make_layer<ConvBase>("Conv2DTranspose", 2, true, filters, size, o,
                                 site)) {
  describe(*this, Conv2DArgs<Conv2DTranspose>{filters, size, std::move(o)});
}
Conv1D::Conv1D(int64_t filters, int64_t size, Conv1DOptions o, Site site)
    : Layer(of_sequences("Conv1D", false, filters, size, o, site)) {
  describe(*this, Conv1DArgs<Conv1D>{filters, size, std::move(o)});
}
Conv1DTranspose::Conv1DTranspose(int64_t filters, int64_t size, Conv1DOptions o,
                                 Site site)
    : Layer(of_sequences("Conv1DTranspose", true, filters, size, o, site)) {
  describe(*this, Conv1DArgs<Conv1DTranspose>{filters, size, std::move(o)});
}

void add_conv_classes(Classes& c);
void add_conv_classes(Classes& c) {
  c.layers["Conv2D"] = &layer_of<Conv2DArgs<Conv2D>>;
  c.layers["Conv2DTranspose"] = &layer_of<Conv2DArgs<Conv2DTranspose>>;
  c.layers["Conv1D"] = &layer_of<Conv1DArgs<Conv1D>>;
  c.layers["Conv1DTranspose"] = &layer_of<Conv1DArgs<Conv1DTranspose>>;
}

}  // namespace berth::keras
