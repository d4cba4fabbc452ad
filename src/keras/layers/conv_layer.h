// ConvLayer: what the layers of convolutions share: checks, bias, activation.

#ifndef BERTH_KERAS_LAYERS_CONV_LAYER_H_
#define BERTH_KERAS_LAYERS_CONV_LAYER_H_

#include <string>

#include "keras/models/layer_checks.h"

namespace berth::keras {

class ConvLayer : public LayerBase {
 public:
  struct Parts {
    int dims = 2;  // of the pixels: 1 to 3
    std::string activation = {};
    bool use_bias = true;
    Initializer bias_initializer = "zeros";
    Regularizer bias_regularizer = {}, activity_regularizer = {};
    Constraint bias_constraint = {};
  };
  ConvLayer(const char* type, const std::string& name, Parts parts, Site site);

  void build(const std::vector<Shape>& inputs) override;
  Tensors call(const Tensors& inputs, bool training) override;

 protected:
  // Makes the kernels for `channels`; returns the number of outputs.
  virtual int64_t make_kernels(int64_t channels) = 0;
  virtual Tensor convolve(const Tensor& x) const = 0;

  // Fails unless all are at least 1.
  void check_sizes(const char* what, const std::vector<int64_t>& sizes) const;

 private:
  const Parts parts_;
  int64_t in_ = 0;
  Variable bias_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_CONV_LAYER_H_
