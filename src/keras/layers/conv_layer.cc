// What convolutions share.

#include "keras/layers/conv_layer.h"

#include <algorithm>

#include "berth/ops/nn.h"

namespace berth::keras {

ConvLayer::ConvLayer(const char* type, const std::string& name, Parts parts,
                     Site site)
    : LayerBase(type, name, site), parts_(std::move(parts)) {
  check_activation(state(), parts_.activation);
  set_activity_regularizer(parts_.activity_regularizer);
}

void ConvLayer::check_sizes(const char* what,
                            const std::vector<int64_t>& sizes) const {
  check_positive(state(), what, *std::min_element(sizes.begin(), sizes.end()));
}

void ConvLayer::build(const std::vector<Shape>& inputs) {
  in_ = known_channels(state(), inputs[0]);
  const int64_t outputs = make_kernels(in_);
  if (parts_.use_bias) {
    bias_ = add_weight("bias", {outputs}, parts_.bias_initializer,
                       {.regularizer = parts_.bias_regularizer,
                        .constraint = parts_.bias_constraint});
  }
}

Tensors ConvLayer::call(const Tensors& inputs, bool) {
  const Tensor& x =
      input_of_rank(state(), inputs, parts_.dims + 2, pixels_form(parts_.dims));
  check_channels(state(), x, in_);
  Tensor y = convolve(x);
  if (parts_.use_bias) y = nn::bias_add(y, bias_.value(site()), site());
  return {apply_activation(parts_.activation, y, site())};
}

}  // namespace berth::keras
