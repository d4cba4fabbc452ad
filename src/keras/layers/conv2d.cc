#include <algorithm>

#include "berth/keras/layers.h"
#include "berth/ops/nn.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class Conv2DBase final : public LayerBase {
 public:
  Conv2DBase(int64_t filters, Size2D size, Conv2DOptions options, Site site)
      : LayerBase("Conv2D", options.name, site),
        filters_(filters),
        size_(size),
        options_(std::move(options)) {
    check_positive(state(), "filters", filters_);
    check_positive(state(), "kernel_size", std::min(size_.h, size_.w));
    check_positive(state(), "strides",
                   std::min(options_.strides.h, options_.strides.w));
    check_positive(
        state(), "dilation_rate",
        std::min(options_.dilation_rate.h, options_.dilation_rate.w));
    check_activation(state(), options_.activation);
    op_ = {.strides = {options_.strides.h, options_.strides.w},
           .padding = padding_of(state(), options_.padding),
           .dilations = {options_.dilation_rate.h, options_.dilation_rate.w}};
  }

  void build(const std::vector<Shape>& inputs) override {
    in_ = known_channels(state(), inputs[0]);
    kernel_ = add_weight("kernel", {size_.h, size_.w, in_, filters_},
                         options_.kernel_initializer);
    if (options_.use_bias) {
      bias_ = add_weight("bias", {filters_}, options_.bias_initializer);
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x =
        input_of_rank(state(), inputs, 4, "[batch, height, width, channels]");
    check_channels(state(), x, in_);
    Tensor y = nn::conv2d(x, kernel_.value(site()), op_, site());
    if (options_.use_bias) y = nn::bias_add(y, bias_.value(site()), site());
    return {apply_activation(options_.activation, y, site())};
  }

 private:
  const int64_t filters_;
  const Size2D size_;
  const Conv2DOptions options_;
  nn::Conv2DOptions op_;
  int64_t in_ = 0;
  Variable kernel_, bias_;
};

}  // namespace

Conv2D::Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options,
               Site site)
    : Layer(std::make_shared<Conv2DBase>(filters, kernel_size,
                                         std::move(options), site)) {}

}  // namespace berth::keras
