// Vocabulary: tokens and their indices.

#ifndef BERTH_KERAS_LAYERS_VOCABULARY_H_
#define BERTH_KERAS_LAYERS_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "keras/layers/categories.h"

namespace berth::keras {

// Key: std::string or int64_t.
template <class Key>
class Vocabulary {
 public:
  struct Settings {
    std::optional<int64_t> max_tokens;
    int64_t num_oov = 1;
    std::optional<Key> mask;
    Key oov = {};
    bool invert = false;
    CategoryMode mode = CategoryMode::kInt;
    bool pad = false;
    std::optional<Salt> salt;
  };
  // Fails in `layer`, which must outlive it, for settings that do not fit.
  Vocabulary(const LayerState& layer, Settings settings);

  void set(const std::vector<Key>& tokens, const std::vector<double>& idf);
  void load(const std::string& path);
  // adapt(): forgets, counts documents, then makes the vocabulary.
  void begin();
  void count(const std::vector<Key>& document);
  void finish();

  // The index of a token; -1 for the mask where it has none.
  int64_t index_of(const Key& token) const;
  const Key& token_of(int64_t index) const;
  std::vector<Key> all(bool with_special) const;
  int64_t size() const;
  int64_t depth() const;
  int64_t token_start() const { return oov_start() + s_.num_oov; }
  int64_t oov_start() const {
    return s_.mask && s_.mode == CategoryMode::kInt ? 1 : 0;
  }
  const Settings& settings() const { return s_; }
  const std::vector<double>& idf() const { return idf_; }
  const std::vector<Key>& tokens() const { return tokens_; }

  // Indices [..., k], as the mode says.
  Tensor encode(const std::vector<int64_t>& indices, const Shape& shape,
                Site site) const;

 private:
  const LayerState& layer_;
  const Settings s_;
  std::vector<Key> tokens_;
  std::vector<double> idf_;  // of all indices
  std::unordered_map<Key, int64_t> index_;
  struct Counts {
    int64_t all = 0, documents = 0;
  };
  std::unordered_map<Key, Counts> counts_;
  int64_t documents_ = 0;
};

extern template class Vocabulary<std::string>;
extern template class Vocabulary<int64_t>;

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_VOCABULARY_H_
