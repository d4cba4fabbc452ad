// sequence_layers: embeddings, attention and the norms used with them
// (tf.keras.layers).
//
// They act like all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_SEQUENCE_LAYERS_H_
#define BERTH_KERAS_SEQUENCE_LAYERS_H_

#include "berth/keras/layers.h"

namespace berth::keras {

struct EmbeddingOptions {
  Initializer embeddings_initializer = "random_uniform";
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
  bool mask_zero = false;  // steps whose id is 0 are masked
};
// A row of `output_dim` numbers per id: [n, ...] -> [n, ..., output_dim]. Ids
// are integers in [0, input_dim), of any numeric dtype; others are an error.
struct Embedding : Layer {
  Embedding(int64_t input_dim, int64_t output_dim,
            EmbeddingOptions options = {}, Site site = Site::here());
};

// One table in both directions: ids [n, ...] give rows as in Embedding, and
// numbers [n, ..., output_dim] their products with all rows [n, ...,
// input_dim], the logits of a language model with tied weights (Press and Wolf
// 2017).
struct ReversibleEmbedding : Layer {
  ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                      EmbeddingOptions options = {}, Site site = Site::here());
};

struct PositionEmbeddingOptions {
  Initializer initializer = "glorot_uniform";
  std::string name = {};
  OwnPolicy dtype = {};
};
// A learned row for each position, added to x: [n, s, d] -> [n, s, d], s at
// most `sequence_length` (keras_hub.layers.PositionEmbedding and the sum).
struct PositionEmbedding : Layer {
  explicit PositionEmbedding(int64_t sequence_length,
                             PositionEmbeddingOptions options = {},
                             Site site = Site::here());
};

struct MultiHeadAttentionOptions {
  int64_t value_dim = 0;  // 0: key_dim
  double dropout = 0;     // rate, of the weights, in training
  bool use_bias = true;
  // Query i sees keys 0 to i only (in TensorFlow an argument of the call).
  bool use_causal_mask = false;
  int64_t output_dim = 0;  // 0: the query's last axis
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
// Attention with several heads (Vaswani et al. 2017). Call it with
//   query [n, s, d]                      the sequence sees itself,
//   {query, value [n, t, e]}             key = value,
//   {query, value, key [n, t, f]},
//   {query, value, key, mask}            bool, broadcast to [n, heads, s, t].
// Steps masked by the mask of value or key (Masking, Embedding) are not seen;
// the mask of the query is passed on.
// [n, s, output_dim]. Weights as in TensorFlow: query, key, value kernels
// [d, heads, key_dim] with biases [heads, key_dim], then the output's.
struct MultiHeadAttention : Layer {
  MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                     MultiHeadAttentionOptions options = {},
                     Site site = Site::here());
};

struct LayerNormalizationOptions {
  double epsilon = 0.001;
  bool center = true;  // has beta
  bool scale = true;   // has gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
  // Axes normalised together; weights have their lengths.
  std::vector<int64_t> axis = {-1};
};
// Normalises each row of the last axis, or of others, [..., c] -> [..., c] (Ba
// et al. 2016).
struct LayerNormalization : Layer {
  explicit LayerNormalization(LayerNormalizationOptions options = {},
                              Site site = Site::here());
};

struct GroupNormalizationOptions {
  int64_t groups = 32;  // -1: one per channel
  double epsilon = 0.001;
  bool center = true;
  bool scale = true;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
  int64_t axis = -1;  // of the channels
};
// Normalises each example by pixels and groups of channels,
// [n, ..., c] -> [n, ..., c] (Wu and He 2018).
struct GroupNormalization : Layer {
  explicit GroupNormalization(GroupNormalizationOptions options = {},
                              Site site = Site::here());
};

namespace layers {
using keras::Embedding;
using keras::GroupNormalization;
using keras::LayerNormalization;
using keras::MultiHeadAttention;
using keras::PositionEmbedding;
using keras::ReversibleEmbedding;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_SEQUENCE_LAYERS_H_
