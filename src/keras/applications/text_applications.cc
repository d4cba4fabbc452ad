// BERT and GPT-2.

#include <fmt/format.h>

#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/applications.h"
#include "berth/keras/image_layers.h"
#include "berth/keras/sequence_layers.h"
#include "keras/layers/text_embedding.h"

namespace berth::keras::applications {

namespace {

// The options with their defaults filled in.
TextOptions checked(const char* what, TextOptions o, int64_t vocabulary,
                    int64_t longest, Site site) {
  if (o.vocabulary_size == 0) o.vocabulary_size = vocabulary;
  if (o.max_sequence_length == 0) {
    o.max_sequence_length =
        o.sequence_length == 0 ? longest : o.sequence_length;
  }
  if (o.sequence_length == 0) o.sequence_length = o.max_sequence_length;
  if (o.intermediate_dim == 0) o.intermediate_dim = 4 * o.hidden_dim;
  const bool sizes = o.vocabulary_size > 0 && o.sequence_length > 0 &&
                     o.num_layers > 0 && o.num_heads > 0 && o.hidden_dim > 0 &&
                     o.intermediate_dim > 0;
  if (sizes && o.sequence_length <= o.max_sequence_length &&
      o.hidden_dim % o.num_heads == 0 && o.dropout >= 0 && o.dropout < 1) {
    return o;
  }
  throw errors::InvalidArgument(fmt::format(
      "{}{}: vocabulary_size is {}, sequence_length {} of at most {}, "
      "num_layers {}, num_heads {}, hidden_dim {}, intermediate_dim {}, "
      "dropout {}; expected sizes of at least 1, hidden_dim in equal parts for "
      "the heads, a sequence_length of at most max_sequence_length, and a "
      "dropout from 0 to below 1",
      what, where_text(nullptr, site), o.vocabulary_size, o.sequence_length,
      o.max_sequence_length, o.num_layers, o.num_heads, o.hidden_dim,
      o.intermediate_dim, o.dropout));
}

const Initializer& drawn() {
  static const Initializer& initializer = immortal<const Initializer>(
      initializers::TruncatedNormal({.stddev = 0.02}));
  return initializer;
}

// One block of a transformer.
struct Block {
  const TextOptions& o;
  std::string prefix;
  double epsilon;
  bool causal;
  const char* activation;

  Layer norm(const char* name) const {
    return LayerNormalization({.epsilon = epsilon, .name = prefix + name});
  }
  KerasTensor attention(const KerasTensor& x,
                        const std::optional<KerasTensor>& mask) const {
    const MultiHeadAttention layer(o.num_heads, o.hidden_dim / o.num_heads,
                                   {.dropout = o.dropout,
                                    .use_causal_mask = causal,
                                    .kernel_initializer = drawn(),
                                    .name = prefix + "attention"});
    const KerasTensor y = mask ? layer(KerasTensors{x, x, x, *mask}) : layer(x);
    return Dropout(o.dropout, {.name = prefix + "attention_dropout"})(y);
  }
  KerasTensor feedforward(const KerasTensor& x) const {
    const KerasTensor wide =
        Dense(o.intermediate_dim, {.activation = activation,
                                   .kernel_initializer = drawn(),
                                   .name = prefix + "intermediate"})(x);
    const KerasTensor y =
        Dense(o.hidden_dim,
              {.kernel_initializer = drawn(), .name = prefix + "output"})(wide);
    return Dropout(o.dropout, {.name = prefix + "output_dropout"})(y);
  }
};

KerasTensor sum(const KerasTensor& a, const KerasTensor& b,
                const std::string& name) {
  return Add({.name = name})(KerasTensors{a, b});
}

}  // namespace

// Norms come after the sums.
Model BERTBase(const TextOptions& options, Site site) {
  const TextOptions o = checked("BERTBase", options, 30522, 512, site);
  const InputOptions tokens{.dtype = int32, .name = "token_ids"};
  const InputOptions segments{.dtype = int32, .name = "segment_ids"};
  const KerasTensor ids = Input({o.sequence_length}, tokens, site);
  const KerasTensor parts = Input({o.sequence_length}, segments, site);
  const KerasTensor mask = padding_mask("padding_mask", site)(ids);
  const KerasTensor words = Embedding(
      o.vocabulary_size, o.hidden_dim,
      {.embeddings_initializer = drawn(), .name = "token_embedding"})(ids);
  const KerasTensor places = PositionEmbedding(
      o.max_sequence_length,
      {.initializer = drawn(), .name = "position_embedding"})(words);
  const KerasTensor kinds = Embedding(
      2, o.hidden_dim,
      {.embeddings_initializer = drawn(), .name = "segment_embedding"})(parts);
  KerasTensor x =
      LayerNormalization({.epsilon = 1e-12, .name = "embeddings_layer_norm"})(
          sum(places, kinds, "embeddings"));
  x = Dropout(o.dropout, {.name = "embeddings_dropout"})(x);
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const Block block{o, fmt::format("layer_{}_", i), 1e-12, false, "gelu"};
    x = block.norm("attention_layer_norm")(
        sum(x, block.attention(x, mask), block.prefix + "attention_sum"));
    x = block.norm("output_layer_norm")(
        sum(x, block.feedforward(x), block.prefix + "output_sum"));
  }
  const KerasTensor first =
      Cropping1D({0, o.sequence_length - 1}, {.name = "first_token"})(x);
  const KerasTensor pooled = Dense(o.hidden_dim, {.activation = "tanh",
                                                  .kernel_initializer = drawn(),
                                                  .name = "pooled_dense"})(
      Flatten({.name = "first_token_flat"})(first));
  return Model(KerasTensors{ids, parts}, KerasTensors{x, pooled},
               {.name = o.name}, site);
}

// Norms stand before the parts, and one at the end; the logits are products
// with the table of the tokens.
Model GPT2Small(const TextOptions& options, Site site) {
  const TextOptions o = checked("GPT2Small", options, 50257, 1024, site);
  const InputOptions tokens{.dtype = int32, .name = "token_ids"};
  const KerasTensor ids = Input({o.sequence_length}, tokens, site);
  const ReversibleEmbedding table(
      o.vocabulary_size, o.hidden_dim,
      {.embeddings_initializer = drawn(), .name = "token_embedding"});
  KerasTensor x = PositionEmbedding(
      o.max_sequence_length,
      {.initializer = drawn(), .name = "position_embedding"})(table(ids));
  x = Dropout(o.dropout, {.name = "embeddings_dropout"})(x);
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const Block block{o, fmt::format("layer_{}_", i), 1e-5, true, "gelu_tanh"};
    x = sum(x, block.attention(block.norm("attention_layer_norm")(x), {}),
            block.prefix + "attention_sum");
    x = sum(x, block.feedforward(block.norm("output_layer_norm")(x)),
            block.prefix + "output_sum");
  }
  x = LayerNormalization({.epsilon = 1e-5, .name = "layer_norm"})(x);
  return Model(ids, table(x), {.name = o.name}, site);
}

}  // namespace berth::keras::applications
