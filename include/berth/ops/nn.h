// nn: what neural networks are made of (tf.nn.*).
//
// Images are [n, h, w, c], filters [kh, kw, c, o], channels last. All take
// floating tensors and throw errors::InvalidArgument for shapes, dtypes or
// options that do not fit. Thread-safe.

#ifndef BERTH_OPS_NN_H_
#define BERTH_OPS_NN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth::nn {

// Elementwise, [shape of x].
Tensor relu(const Tensor& x, Site site = Site::here());

struct GeluOptions {
  bool approximate = false;  // by tanh instead of erf
};
// x P(X <= x) for a standard normal X.
Tensor gelu(const Tensor& x, const GeluOptions& options = {},
            Site site = Site::here());

// value [..., c] + bias [c].
Tensor bias_add(const Tensor& value, const Tensor& bias,
                Site site = Site::here());

struct DropoutOptions {
  // Mixed into the seed of the process.
  std::optional<int64_t> seed = std::nullopt;
};
// Zeros each element with probability `rate`, in [0, 1), and divides the
// others by 1 - rate; [shape of x]. Which ones is drawn as random.h says.
Tensor dropout(const Tensor& x, double rate, const DropoutOptions& options = {},
               Site site = Site::here());

// Sum of squares / 2, a scalar.
Tensor l2_loss(const Tensor& x, Site site = Site::here());

// exp(x) / sum(exp(x)) along `axis`, and its logarithm; [shape of x].
Tensor softmax(const Tensor& x, int64_t axis = -1, Site site = Site::here());
Tensor log_softmax(const Tensor& x, int64_t axis = -1,
                   Site site = Site::here());

// -sum(labels * log_softmax(logits)) over the last axis: labels, logits
// [..., c] -> [...]. Labels are probabilities.
Tensor softmax_cross_entropy_with_logits(const Tensor& labels,
                                         const Tensor& logits,
                                         Site site = Site::here());
// The same for labels [...] of int32 or int64 that name the true class, in
// [0, c); another label is an error.
Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels,
                                                const Tensor& logits,
                                                Site site = Site::here());

struct Conv2DOptions {
  std::vector<int64_t> strides = {1};  // {both}, {h, w} or {1, h, w, 1}
  std::string padding = "VALID";       // or "SAME"
  std::vector<int64_t> dilations = {1};
};
// Correlation of input [n, h, w, c] with filters [kh, kw, c, o]:
// [n, oh, ow, o], where SAME gives oh = ceil(h / stride) and VALID those
// windows that are inside the image.
Tensor conv2d(const Tensor& input, const Tensor& filters,
              const Conv2DOptions& options = {}, Site site = Site::here());

struct PoolOptions {
  std::vector<int64_t> ksize = {2};
  std::vector<int64_t> strides = {};  // like ksize when empty
  std::string padding = "VALID";
};
// Largest, or mean, of the pixels of each window that are inside the image:
// [n, h, w, c] -> [n, oh, ow, c].
Tensor max_pool2d(const Tensor& input, const PoolOptions& options = {},
                  Site site = Site::here());
Tensor avg_pool2d(const Tensor& input, const PoolOptions& options = {},
                  Site site = Site::here());

struct FusedBatchNormOptions {
  double epsilon = 0.001;
  bool is_training = true;
  Tensor mean = {};  // [c]; both needed, and read, when not training
  Tensor variance = {};
};
struct FusedBatchNorm {
  Tensor y;               // [..., c]
  Tensor batch_mean;      // [c]
  Tensor batch_variance;  // [c], with Bessel's correction
};
// (x - mean) / sqrt(variance + epsilon) * scale + offset per channel of
// x [..., c]; scale, offset [c]. Training takes mean and biased variance of
// x itself.
FusedBatchNorm fused_batch_norm(const Tensor& x, const Tensor& scale,
                                const Tensor& offset,
                                const FusedBatchNormOptions& options = {},
                                Site site = Site::here());

// (x - mean) / sqrt(variance + epsilon) * scale + offset per row of x
// [..., d], with the row's own mean and biased variance; scale, offset [d].
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                  double epsilon = 1e-3, Site site = Site::here());

// Mean and biased variance over `axes`, [x without them].
std::pair<Tensor, Tensor> moments(const Tensor& x,
                                  const std::vector<int64_t>& axes,
                                  bool keepdims = false,
                                  Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_NN_H_
