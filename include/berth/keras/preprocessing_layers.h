// preprocessing_layers: numbers, categories and text as tensors for a model
// (tf.keras.layers).
//
// They act like all layers (layers.h). Those for text (StringLookup,
// TextVectorization, Hashing, HashedCrossing) compute on the host at once, in a
// pipeline or before the model: a traced function is an error. adapt() and
// set_vocabulary() change a layer: no other thread may use it meanwhile.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_PREPROCESSING_LAYERS_H_
#define BERTH_KERAS_PREPROCESSING_LAYERS_H_

#include <functional>

#include "berth/data.h"
#include "berth/keras/layers.h"

namespace berth::keras {

// The data of adapt(): one tensor [n, ...], or the batches of a dataset (their
// first component), all or the first `steps`.
struct AdaptData {
  AdaptData(const Tensor& all) : all(all) {}                           // NOLINT
  AdaptData(data::Dataset batches, std::optional<int64_t> steps = {})  // NOLINT
      : batches(std::move(batches)), steps(steps) {}
  Tensor all;
  std::optional<data::Dataset> batches;
  std::optional<int64_t> steps;
};

struct NormalizationOptions {
  // Axes with a separate mean; none: one for all.
  std::vector<int64_t> axis = {-1};
  // One number per axis, or one for all; learned if empty.
  std::vector<double> mean = {};
  std::vector<double> variance = {};
  bool invert = false;  // x * sqrt(variance) + mean
  std::string name = {};
  OwnPolicy dtype = {};
};
// (x - mean) / sqrt(variance), as float32: [n, ...] -> [n, ...].
struct Normalization : Layer {
  explicit Normalization(NormalizationOptions options = {},
                         Site site = Site::here());
  void adapt(const AdaptData& data);
};

// The output for categories: "int": their indices, int64; otherwise float32 of
// depth d: "one_hot" [..., d] per index (a last axis of length 1 is dropped);
// "multi_hot" [..., d], 1 where they occur along the last axis, "count" how
// often, or "tf_idf" that times a weight per category.

struct DiscretizationOptions {
  std::vector<double> bin_boundaries = {};  // ascending
  int64_t num_bins = 0;                     // adapt() finds the boundaries
  double epsilon = 0.01;                    // of the quantiles
  std::string output_mode = "int";          // "one_hot", "multi_hot", "count"
  std::string name = {};
};
// The bin of each number among the boundaries; bin i begins at boundary i - 1.
struct Discretization : Layer {
  explicit Discretization(DiscretizationOptions options,
                          Site site = Site::here());
  void adapt(const AdaptData& data);
  std::vector<double> bin_boundaries() const;
};

struct CategoryEncodingOptions {
  std::string output_mode = "multi_hot";  // "one_hot", "count"
  std::string name = {};
};
// Indices in [0, num_tokens); others are ignored. "count" takes a second input,
// like the first: the weight of each.
struct CategoryEncoding : Layer {
  explicit CategoryEncoding(int64_t num_tokens,
                            CategoryEncodingOptions options = {},
                            Site site = Site::here());
};

// Two numbers that change a hash: 133, or {133, 137}.
struct Salt {
  Salt(uint64_t both) : first(both), second(both) {}  // NOLINT
  Salt(uint64_t first, uint64_t second) : first(first), second(second) {}
  uint64_t first, second;
};

struct HashingOptions {
  // Bin 0 is reserved for this text or number.
  std::optional<std::string> mask_value = std::nullopt;
  std::optional<Salt> salt = std::nullopt;
  std::string output_mode = "int";  // "one_hot", "multi_hot", "count"
  std::string name = {};
};
// A bin in [0, num_bins) that depends only on the value, a text or integer:
// FarmHash's Fingerprint64, or SipHash with a salt, as in TensorFlow.
struct Hashing : Layer {
  explicit Hashing(int64_t num_bins, HashingOptions options = {},
                   Site site = Site::here());
};
struct HashedCrossingOptions {
  std::string output_mode = "int";  // or "one_hot"
  std::string name = {};
};
// One bin for the combined values of several inputs [n] or [n, 1].
struct HashedCrossing : Layer {
  explicit HashedCrossing(int64_t num_bins, HashedCrossingOptions options = {},
                          Site site = Site::here());
};

struct IntegerLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  // special ones included
  int64_t num_oov_indices = 1;
  std::optional<int64_t> mask_token = std::nullopt;
  int64_t oov_token = -1;
  std::vector<int64_t> vocabulary = {};
  std::string vocabulary_file = {};  // one per line
  std::vector<double> idf_weights = {};
  bool invert = false;              // indices to tokens
  std::string output_mode = "int";  // all modes
  bool pad_to_max_tokens = false;
  std::string name = {};
};
// Indices of integers: 0 for the mask (if there is one, in mode "int"), then
// those for numbers that are not in the vocabulary, then the vocabulary's.
// Without indices for unknown numbers they are an error, or -1 in a traced
// function.
struct IntegerLookup : Layer {
  explicit IntegerLookup(IntegerLookupOptions options = {},
                         Site site = Site::here());
  // Learns the most frequent numbers; on a tie the larger.
  void adapt(const AdaptData& data);
  // Throws errors::InvalidArgument for repeated tokens or too many.
  void set_vocabulary(const std::vector<int64_t>& vocabulary,
                      const std::vector<double>& idf_weights = {});
  std::vector<int64_t> get_vocabulary(bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;
};

struct StringLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  // special ones included
  int64_t num_oov_indices = 1;
  std::optional<std::string> mask_token = std::nullopt;
  std::string oov_token = "[UNK]";
  std::vector<std::string> vocabulary = {};
  std::string vocabulary_file = {};  // one per line
  std::vector<double> idf_weights = {};
  bool invert = false;              // indices to tokens
  std::string output_mode = "int";  // all modes
  bool pad_to_max_tokens = false;
  std::optional<Salt> salt = std::nullopt;  // for several oov indices
  std::string name = {};
};
// Looks up text as IntegerLookup looks up numbers.
struct StringLookup : Layer {
  explicit StringLookup(StringLookupOptions options = {},
                        Site site = Site::here());
  void adapt(const AdaptData& data);
  void set_vocabulary(const std::vector<std::string>& vocabulary,
                      const std::vector<double>& idf_weights = {});
  std::vector<std::string> get_vocabulary(
      bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;
};

// 2: words and pairs; {1, 3}: words and triples.
struct Ngrams {
  Ngrams(int64_t most) {  // NOLINT
    for (int64_t n = 1; n <= most; ++n) widths.push_back(n);
  }
  Ngrams(std::initializer_list<int64_t> widths) : widths(widths) {}
  std::vector<int64_t> widths;
};

struct TextVectorizationOptions {
  using Standardize = std::function<std::string(const std::string&)>;
  using Split = std::function<std::vector<std::string>(const std::string&)>;
  std::optional<int64_t> max_tokens = std::nullopt;
  // "lower", "strip_punctuation", "" for none; ASCII letters and punctuation.
  std::string standardize = "lower_and_strip_punctuation";
  std::string split = "whitespace";  // "character", "" for none
  std::optional<Ngrams> ngrams = std::nullopt;
  std::string output_mode = "int";  // "multi_hot", "count", "tf_idf"
  // Longer texts are truncated, shorter ones padded with 0; absent: the
  // longest.
  std::optional<int64_t> output_sequence_length = std::nullopt;
  bool pad_to_max_tokens = false;
  std::vector<std::string> vocabulary = {};
  std::string vocabulary_file = {};
  std::vector<double> idf_weights = {};
  Standardize standardize_fn = {};  // instead of `standardize`
  Split split_fn = {};              // instead of `split`
  std::string name = {};
};
// Texts [n] or [n, 1] as indices of their words [n, length], or as one row over
// the vocabulary each [n, size]. Index 0 is padding, 1 any unknown word.
struct TextVectorization : Layer {
  explicit TextVectorization(TextVectorizationOptions options = {},
                             Site site = Site::here());
  void adapt(const AdaptData& data);
  void set_vocabulary(const std::vector<std::string>& vocabulary,
                      const std::vector<double>& idf_weights = {});
  std::vector<std::string> get_vocabulary(
      bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;
};

namespace layers {
using keras::CategoryEncoding;
using keras::Discretization;
using keras::HashedCrossing;
using keras::Hashing;
using keras::IntegerLookup;
using keras::Normalization;
using keras::StringLookup;
using keras::TextVectorization;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_PREPROCESSING_LAYERS_H_
