// activations: what layers apply to their outputs (tf.keras.activations).
//
// Layers take them by name: linear (or ""), relu, relu6, leaky_relu, elu, celu,
// selu, gelu, gelu_tanh, silu (swish), hard_silu (hard_swish), mish, sigmoid,
// hard_sigmoid, log_sigmoid, sparse_sigmoid, tanh, hard_tanh, tanh_shrink,
// soft_shrink, hard_shrink, softplus, squareplus, sparse_plus, softsign,
// exponential, glu, softmax, log_softmax, sparsemax; with the defaults below.
// All take floating tensors. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_ACTIVATIONS_H_
#define BERTH_KERAS_ACTIVATIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "berth/tensor.h"

namespace berth::keras::activations {

// Elementwise, [shape of x].

Tensor linear(const Tensor& x, Site site = Site::here());
struct ReluOptions {
  double negative_slope = 0;
  std::optional<double> max_value = std::nullopt;  // none
  double threshold = 0;
};
// x where x >= threshold, else negative_slope * (x - threshold); at most
// max_value.
Tensor relu(const Tensor& x, const ReluOptions& options = {},
            Site site = Site::here());
Tensor relu6(const Tensor& x, Site site = Site::here());
// x where positive, else negative_slope * x.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.2,
                  Site site = Site::here());
// x where positive, else alpha * (exp(x) - 1), or alpha * (exp(x / alpha) - 1).
Tensor elu(const Tensor& x, double alpha = 1, Site site = Site::here());
Tensor celu(const Tensor& x, double alpha = 1, Site site = Site::here());
Tensor selu(const Tensor& x, Site site = Site::here());
Tensor gelu(const Tensor& x, bool approximate = false,
            Site site = Site::here());
Tensor silu(const Tensor& x, Site site = Site::here());
Tensor swish(const Tensor& x, Site site = Site::here());
Tensor hard_silu(const Tensor& x, Site site = Site::here());
Tensor hard_swish(const Tensor& x, Site site = Site::here());
Tensor mish(const Tensor& x, Site site = Site::here());
Tensor sigmoid(const Tensor& x, Site site = Site::here());
Tensor hard_sigmoid(const Tensor& x, Site site = Site::here());
Tensor log_sigmoid(const Tensor& x, Site site = Site::here());
// (x + 1) / 2 clamped to [0, 1].
Tensor sparse_sigmoid(const Tensor& x, Site site = Site::here());
Tensor tanh(const Tensor& x, Site site = Site::here());
// x clamped to [-1, 1].
Tensor hard_tanh(const Tensor& x, Site site = Site::here());
// x - tanh(x).
Tensor tanh_shrink(const Tensor& x, Site site = Site::here());
// Moves x by threshold towards 0, but not past it: 0 where |x| is at most
// threshold.
Tensor soft_shrink(const Tensor& x, double threshold = 0.5,
                   Site site = Site::here());
Tensor hard_shrink(const Tensor& x, double threshold = 0.5,
                   Site site = Site::here());
// x where it exceeds threshold, else default_value.
Tensor threshold(const Tensor& x, double threshold, double default_value,
                 Site site = Site::here());
Tensor softplus(const Tensor& x, Site site = Site::here());
// (x + sqrt(x^2 + b)) / 2.
Tensor squareplus(const Tensor& x, double b = 4, Site site = Site::here());
// 0 below -1, x above 1, (x + 1)^2 / 4 between.
Tensor sparse_plus(const Tensor& x, Site site = Site::here());
Tensor softsign(const Tensor& x, Site site = Site::here());
Tensor exponential(const Tensor& x, Site site = Site::here());

// a * sigmoid(b) of the halves a, b along `axis`, which must be even and known.
Tensor glu(const Tensor& x, int64_t axis = -1, Site site = Site::here());
Tensor softmax(const Tensor& x, int64_t axis = -1, Site site = Site::here());
Tensor log_softmax(const Tensor& x, int64_t axis = -1,
                   Site site = Site::here());
// The distribution closest to x along `axis` (Martins and Astudillo 2016).
Tensor sparsemax(const Tensor& x, int64_t axis = -1, Site site = Site::here());

}  // namespace berth::keras::activations

#endif  // BERTH_KERAS_ACTIVATIONS_H_
