// nn: building blocks of neural networks (tf.nn.*).
//
// Convolutions and pools are in conv.h. All take floating tensors and throw
// errors::InvalidArgument for shapes, dtypes or options that do not fit.
// Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_NN_H_
#define BERTH_OPS_NN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/ops/conv.h"
#include "berth/ops/math.h"
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

// x < 0 ? exp(x) - 1 : x, and its self-normalising form.
Tensor elu(const Tensor& x, Site site = Site::here());
Tensor selu(const Tensor& x, Site site = Site::here());
// x > 0 ? x : alpha x.
Tensor leaky_relu(const Tensor& x, double alpha = 0.2,
                  Site site = Site::here());
// min(max(x, 0), 6).
Tensor relu6(const Tensor& x, Site site = Site::here());
// x sigmoid(x), under both names.
Tensor silu(const Tensor& x, Site site = Site::here());
Tensor swish(const Tensor& x, Site site = Site::here());
// relu6(x + 3) / 6, x times that, and x tanh(softplus(x))
// (tf.keras.activations).
Tensor hard_sigmoid(const Tensor& x, Site site = Site::here());
Tensor hard_swish(const Tensor& x, Site site = Site::here());
Tensor mish(const Tensor& x, Site site = Site::here());
using math::log_sigmoid;
using math::sigmoid;
using math::softplus;
using math::softsign;
using math::tanh;

// value [..., c] + bias [c].
Tensor bias_add(const Tensor& value, const Tensor& bias,
                Site site = Site::here());

struct DropoutOptions {
  // Mixed into the seed of the process.
  std::optional<int64_t> seed = std::nullopt;
  // One draw along each axis where it is 1, a draw per element where it has x's
  // length or is -1; a draw per element if empty.
  std::vector<int64_t> noise_shape = {};
};
// Zeros each element with probability `rate`, in [0, 1), and divides the others
// by 1 - rate; [shape of x]. Draws follow random.h.
Tensor dropout(const Tensor& x, double rate, const DropoutOptions& options = {},
               Site site = Site::here());

// Sum of squares / 2, a scalar.
Tensor l2_loss(const Tensor& x, Site site = Site::here());

// -labels log(p) - (1 - labels) log(1 - p), p = sigmoid(logits), exact for
// logits of any size; labels and logits have one shape. The second multiplies
// its first part by pos_weight, which broadcasts.
Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels,
                                         const Tensor& logits,
                                         Site site = Site::here());
Tensor weighted_cross_entropy_with_logits(const Tensor& labels,
                                          const Tensor& logits,
                                          const Tensor& pos_weight,
                                          Site site = Site::here());

// -log of the probability of the counts `targets` under a Poisson distribution
// with mean exp(log_input), without log(targets!), or with Stirling's estimate
// of that where targets > 1.
Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input,
                        bool compute_full_loss = false,
                        Site site = Site::here());

// exp(x) / sum(exp(x)) along `axis`, and its logarithm; [shape of x].
Tensor softmax(const Tensor& x, int64_t axis = -1, Site site = Site::here());
inline Tensor softmax(const Tensor& x, const math::AxisOptions& options,
                      Site site = Site::here()) {
  return softmax(x, options.axis, site);
}
Tensor log_softmax(const Tensor& x, int64_t axis = -1,
                   Site site = Site::here());
inline Tensor log_softmax(const Tensor& x, const math::AxisOptions& options,
                          Site site = Site::here()) {
  return log_softmax(x, options.axis, site);
}

// -sum(labels * log_softmax(logits)) over the last axis: labels, logits
// [..., c] -> [...]. Labels are probabilities.
Tensor softmax_cross_entropy_with_logits(const Tensor& labels,
                                         const Tensor& logits,
                                         Site site = Site::here());
// Softmax cross entropy for labels [...] of int32 or int64, the true classes,
// in [0, c); another label is an error.
Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels,
                                                const Tensor& logits,
                                                Site site = Site::here());

struct FusedBatchNormOptions {
  double epsilon = 0.001;
  bool is_training = true;
  Tensor mean = {};  // [c]; both needed, and read, when not training
  Tensor variance = {};
  // In training, each of this many equal consecutive groups of the batch is
  // normalised by its own moments; 0, 1: the batch is one group.
  int64_t statistics_groups = 1;
};
struct FusedBatchNorm {
  Tensor y;               // [..., c]
  Tensor batch_mean;      // [c]; for several groups, the mean
  Tensor batch_variance;  // [c], with Bessel's correction; likewise
  Tensor variance;        // without; [groups, c] for several groups
};
// (x - mean) / sqrt(variance + epsilon) * scale + offset per channel of x [...,
// c]; scale, offset [c]. Training uses mean and biased variance of x itself. If
// x has 16 bits, all but y is float32, as in the norms below.
FusedBatchNorm fused_batch_norm(const Tensor& x, const Tensor& scale,
                                const Tensor& offset,
                                const FusedBatchNormOptions& options = {},
                                Site site = Site::here());

using math::l2_normalize;
using math::zero_fraction;
// (x - mean) / sqrt(variance + epsilon) * scale + offset per row of x
// [..., d], with the row's own mean and biased variance; scale, offset [d].
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                  double epsilon = 1e-3, Site site = Site::here());

// Mean and biased variance over `axes`, [x without them].
std::pair<Tensor, Tensor> moments(const Tensor& x,
                                  const std::vector<int64_t>& axes,
                                  bool keepdims = false,
                                  Site site = Site::here());

// (x - mean) / sqrt(variance + epsilon) * scale + offset over the pixels and
// the channels of each of `groups` groups of x [n, ..., c] (Wu and He 2018);
// scale, offset [c]. groups = c is instance norm. c must be known.
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale,
                  const Tensor& offset, double epsilon = 1e-3,
                  Site site = Site::here());
Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                     double epsilon = 1e-3, Site site = Site::here());
// x / sqrt(mean(x^2) + epsilon) * scale over the last axis of x [..., c];
// scale [c] (Zhang and Sennrich 2019).
Tensor rms_norm(const Tensor& x, const Tensor& scale, double epsilon = 1e-6,
                Site site = Site::here());

struct LrnOptions {
  int64_t depth_radius = 5;
  double bias = 1;
  double alpha = 1;
  double beta = 0.5;
};
// x / (bias + alpha * sum of x^2 over the channels no further than
// depth_radius away)^beta for x [..., c], c known
// (tf.nn.local_response_normalization).
Tensor local_response_normalization(const Tensor& x,
                                    const LrnOptions& options = {},
                                    Site site = Site::here());

// softmax(logits * scale + mask) over the last axis of logits [..., s, t]; mask
// broadcasts to them, or is absent. Causal: row i sees columns 0 to i only. A
// fully masked row (all -inf) is 0.
struct MaskedSoftmaxOptions {
  double scale = 1;
  bool is_causal = false;
};
Tensor masked_softmax(const Tensor& logits, const Tensor& mask = {},
                      const MaskedSoftmaxOptions& options = {},
                      Site site = Site::here());

struct AttentionOptions {
  // [..., s, t] or broadcast to it: bool, true where a query may see a key,
  // or numbers that are added to the scores.
  Tensor mask = {};
  bool is_causal = false;  // query i sees keys 0 to i only
  double dropout = 0;      // rate, of the weights; set it in training only
  std::optional<double> scale = std::nullopt;  // 1 / sqrt(d)
  std::optional<int64_t> seed = std::nullopt;  // of dropout
};
// softmax(query key^T * scale + mask) value (Vaswani et al. 2017): query
// [..., s, d], key [..., t, d], value [..., t, e] -> [..., s, e]. The leading
// axes, say [batch, heads], broadcast. d must be known unless scale is given.
// Without dropout it is one op, of which cuDNN has a kernel (docs/gpu.md); else
// MatMul, MaskedSoftmax, MatMul. Throws errors::InvalidArgument for shapes that
// do not fit. Keras' ops.dot_product_attention, with the heads before the rows.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                    const Tensor& value,
                                    const AttentionOptions& options = {},
                                    Site site = Site::here());

// Rows of params [rows, ...] selected by ids [...]: [shape of ids, ...].
Tensor embedding_lookup(const Tensor& params, const Tensor& ids,
                        Site site = Site::here());

struct AverageLossOptions {
  Tensor sample_weight = {};      // [batch] or the shape of the loss
  int64_t global_batch_size = 0;  // 0: the examples of all replicas
};
// The sum of per_example_loss [batch, ...], times weights, over the batch size;
// in strategy.run() the global one, so that the results of the replicas add up
// to the mean (tf.nn.compute_average_loss).
Tensor compute_average_loss(const Tensor& per_example_loss,
                            const AverageLossOptions& options = {},
                            Site site = Site::here());
// The sum of loss over the number of replicas, whose results are added: for
// terms that each replica has whole (tf.nn.scale_regularization_loss).
Tensor scale_regularization_loss(const Tensor& loss, Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_NN_H_
