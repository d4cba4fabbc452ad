// attention_layers: attention without projections, and with grouped heads
// (tf.keras.layers); MultiHeadAttention is in sequence_layers.h.
//
// They act like all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_ATTENTION_LAYERS_H_
#define BERTH_KERAS_ATTENTION_LAYERS_H_

#include "berth/keras/layers.h"

namespace berth::keras {

// Called with
//   {query [n, s, d], value [n, t, e]}           key = value,
//   {query, value, key [n, t, d]},
//   {query, value, key, mask}                    bool, broadcast to [n, s, t]:
// the mask is true where a query may see a key. The result is [n, s, e].
struct AttentionLayerOptions {
  bool use_scale = false;  // a weight that scales the scores
  // "dot": query key^T; "concat": a weight times sum tanh(query + key).
  std::string score_mode = "dot";
  double dropout = 0;  // rate, of the weights, in training
  std::optional<int64_t> seed = std::nullopt;
  // Query i sees keys 0 to i only (in Keras an argument of the call).
  bool use_causal_mask = false;
  // The call returns a second tensor: the weights [n, s, t].
  bool return_attention_scores = false;
  std::string name = {};
  OwnPolicy dtype = {};
};
// softmax(scores) value (Luong et al. 2015).
struct Attention : Layer {
  explicit Attention(AttentionLayerOptions options = {},
                     Site site = Site::here());
};

struct AdditiveAttentionOptions {
  bool use_scale = true;  // a weight [d]
  double dropout = 0;
  std::optional<int64_t> seed = std::nullopt;
  bool use_causal_mask = false;
  bool return_attention_scores = false;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Attention with scores sum(scale * tanh(query + key)) (Bahdanau et al. 2014).
struct AdditiveAttention : Layer {
  explicit AdditiveAttention(AdditiveAttentionOptions options = {},
                             Site site = Site::here());
};

struct GroupQueryAttentionOptions {
  double dropout = 0;  // rate, of the weights, in training
  bool use_bias = true;
  // Queries see keys fewer than this many positions away.
  std::optional<int64_t> sliding_window = std::nullopt;
  bool use_gate = false;  // result * sigmoid(projection of the query)
  bool use_causal_mask = false;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Attention with num_query_heads heads; equal groups of them share each of
// num_key_value_heads heads of keys and values (Ainslie et al. 2023). Called
// like MultiHeadAttention: query [n, s, d], {query, value [n, t, e]}, {query,
// value, key} or {query, value, key, mask}, a bool mask that broadcasts to [n,
// heads, s, t]; returns [n, s, d]. Weights: kernels [d, heads, head_dim] with
// biases [heads, head_dim] of query, key, (gate,) value, then [heads, head_dim,
// d], [d] of the output.
struct GroupQueryAttention : Layer {
  GroupQueryAttention(int64_t head_dim, int64_t num_query_heads,
                      int64_t num_key_value_heads,
                      GroupQueryAttentionOptions options = {},
                      Site site = Site::here());
};

namespace layers {
using keras::AdditiveAttention;
using keras::Attention;
using keras::GroupQueryAttention;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_ATTENTION_LAYERS_H_
