// Vocabulary: adapts, loads and looks up.

#include "keras/layers/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <unordered_set>

#include "berth/ops/array.h"
#include "keras/layers/categories.h"
#include "keras/layers/text_hashes.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

namespace {

// Longer lines than any word, shorter than a file that is none.
constexpr size_t kLongestToken = 1 << 20;

std::string token_text(const std::string& t) { return t; }
std::string token_text(int64_t t) { return std::to_string(t); }

bool parse_token(const std::string& line, std::string* token) {
  *token = line;
  return line.size() <= kLongestToken;
}
bool parse_token(const std::string& line, int64_t* token) {
  const char* end = line.data() + line.size();
  const auto [at, error] = std::from_chars(line.data(), end, *token);
  return error == std::errc() && at == end;
}

int64_t oov_bin(const std::string& token, int64_t bins,
                const std::optional<Salt>& salt) {
  const uint64_t hash = salt ? salted_hash(token, *salt) : fast_hash(token);
  return static_cast<int64_t>(hash % static_cast<uint64_t>(bins));
}
int64_t oov_bin(int64_t token, int64_t bins, const std::optional<Salt>&) {
  const int64_t r = token % bins;
  return r < 0 ? r + bins : r;
}

}  // namespace

template <class Key>
Vocabulary<Key>::Vocabulary(const LayerState& layer, Settings settings)
    : layer_(layer), s_(std::move(settings)) {
  if (s_.num_oov < 0 || (s_.max_tokens && *s_.max_tokens <= 1) ||
      (s_.pad && !s_.max_tokens)) {
    fail_in(
        layer_,
        fmt::format("{}: num_oov_indices is {}, max_tokens {}; expected 0 "
                    "or more, and more than 1 (needed to pad to it)",
                    layer_.type, s_.num_oov,
                    s_.max_tokens ? std::to_string(*s_.max_tokens) : "absent"));
  }
  if (s_.invert && s_.mode != CategoryMode::kInt) {
    fail_in(layer_, "{}: invert is set; expected output_mode \"int\" with it",
            layer_.type);
  }
}

template <class Key>
void Vocabulary<Key>::set(const std::vector<Key>& given,
                          const std::vector<double>& idf) {
  std::vector<Key> special;
  if (oov_start() == 1) special.push_back(*s_.mask);
  for (int64_t i = 0; i < s_.num_oov; ++i) special.push_back(s_.oov);
  const bool has_special =
      given.size() >= special.size() &&
      std::equal(special.begin(), special.end(), given.begin());
  const size_t from = has_special ? special.size() : 0;
  std::vector<Key> tokens(given.begin() + static_cast<ptrdiff_t>(from),
                          given.end());
  auto refuse = [&](const std::string& what) {
    fail_in(layer_, "{}: the vocabulary {}", layer_.type, what);
  };
  if (given.empty()) refuse("is empty; expected at least one token");
  const int64_t size = token_start() + static_cast<int64_t>(tokens.size());
  if (s_.max_tokens && size > *s_.max_tokens) {
    refuse(
        fmt::format("has {} tokens with the special ones; expected at most "
                    "max_tokens, {}",
                    size, *s_.max_tokens));
  }
  std::unordered_map<Key, int64_t> index;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if ((s_.mask && tokens[i] == *s_.mask) ||
        (s_.invert && tokens[i] == s_.oov)) {
      refuse(
          fmt::format("has the special token \"{}\" at {}; expected none, "
                      "or all in front: the mask, then {} unknown ones",
                      token_text(tokens[i]), i + from, s_.num_oov));
    }
    const auto at = token_start() + static_cast<int64_t>(i);
    if (!index.emplace(tokens[i], at).second) {
      refuse(fmt::format("has \"{}\" twice; expected each token once",
                         token_text(tokens[i])));
    }
  }
  std::vector<double> weights;
  if (s_.mode == CategoryMode::kTfIdf) {
    if (idf.size() != given.size()) {
      refuse(fmt::format("has {} tokens, idf_weights {}; expected as many",
                         given.size(), idf.size()));
    }
    double mean = 0;
    for (double w : idf) mean += w / static_cast<double>(idf.size());
    if (!has_special) weights.assign(special.size(), mean);
    weights.insert(weights.end(), idf.begin(), idf.end());
  } else if (!idf.empty()) {
    refuse("comes with idf_weights; expected output_mode \"tf_idf\" then");
  }
  tokens_ = std::move(tokens);
  index_ = std::move(index);
  idf_ = std::move(weights);
  idf_.resize(
      static_cast<size_t>(s_.mode == CategoryMode::kTfIdf ? depth() : 0));
}

template <class Key>
void Vocabulary<Key>::load(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fail_in(layer_,
            "{}: vocabulary_file \"{}\" does not open; "
            "expected a text file, one token per line",
            layer_.type, path);
  }
  if (s_.mode == CategoryMode::kTfIdf) {
    fail_in(layer_,
            "{}: a vocabulary_file has no idf_weights; "
            "expected a vocabulary with them",
            layer_.type);
  }
  std::vector<Key> tokens;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    Key token;
    if (!parse_token(line, &token)) {
      fail_in(layer_, "{}: {}:{}: \"{}\"; expected a token", layer_.type, path,
              tokens.size() + 1, line.substr(0, 40));
    }
    tokens.push_back(std::move(token));
  }
  set(tokens, {});
}

template <class Key>
void Vocabulary<Key>::begin() {
  counts_.clear();
  documents_ = 0;
}

template <class Key>
void Vocabulary<Key>::count(const std::vector<Key>& document) {
  ++documents_;
  std::unordered_set<Key> seen;
  for (const Key& token : document) {
    Counts& c = counts_[token];
    ++c.all;
    if (s_.mode == CategoryMode::kTfIdf && seen.insert(token).second) {
      ++c.documents;
    }
  }
}

template <class Key>
void Vocabulary<Key>::finish() {
  if (s_.mask) counts_.erase(*s_.mask);
  counts_.erase(s_.oov);
  std::vector<std::pair<Key, Counts>> list(counts_.begin(), counts_.end());
  counts_.clear();
  if (list.empty()) {
    fail_in(layer_, "{}: adapt() saw no token; expected some", layer_.type);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second.all != b.second.all ? a.second.all > b.second.all
                                        : a.first > b.first;
  });
  if (s_.max_tokens) {
    const int64_t most = std::max<int64_t>(*s_.max_tokens - token_start(), 0);
    list.resize(std::min(list.size(), static_cast<size_t>(most)));
  }
  std::vector<Key> tokens;
  std::vector<double> idf;
  for (const auto& [token, counts] : list) {
    tokens.push_back(token);
    if (s_.mode != CategoryMode::kTfIdf) continue;
    idf.push_back(std::log1p(static_cast<double>(documents_) /
                             (1 + static_cast<double>(counts.documents))));
  }
  set(tokens, idf);
}

template <class Key>
int64_t Vocabulary<Key>::index_of(const Key& token) const {
  if (s_.mask && token == *s_.mask) return oov_start() == 1 ? 0 : -1;
  const auto found = index_.find(token);
  if (found != index_.end()) return found->second;
  if (s_.num_oov == 1) return oov_start();
  if (s_.num_oov > 1) return oov_start() + oov_bin(token, s_.num_oov, s_.salt);
  fail_in(layer_,
          "{}: \"{}\" is not in the vocabulary; expected "
          "one that is, or num_oov_indices above 0",
          layer_.type, token_text(token));
}

template <class Key>
const Key& Vocabulary<Key>::token_of(int64_t index) const {
  if (index == 0 && oov_start() == 1) return *s_.mask;
  const int64_t i = index - token_start();
  if (i < 0 || i >= static_cast<int64_t>(tokens_.size())) return s_.oov;
  return tokens_[static_cast<size_t>(i)];
}

template <class Key>
std::vector<Key> Vocabulary<Key>::all(bool with_special) const {
  std::vector<Key> list;
  if (tokens_.empty()) return list;
  if (with_special && oov_start() == 1) list.push_back(*s_.mask);
  if (with_special) {
    list.insert(list.end(), static_cast<size_t>(s_.num_oov), s_.oov);
  }
  list.insert(list.end(), tokens_.begin(), tokens_.end());
  return list;
}

template <class Key>
int64_t Vocabulary<Key>::size() const {
  return token_start() + static_cast<int64_t>(tokens_.size());
}
template <class Key>
int64_t Vocabulary<Key>::depth() const {
  return s_.pad ? *s_.max_tokens : size();
}

template <class Key>
Tensor Vocabulary<Key>::encode(const std::vector<int64_t>& indices,
                               const Shape& given, Site site) const {
  if (s_.mode == CategoryMode::kInt) return constant(indices, given, site);
  Shape shape = given;
  if (shape.rank() == 0) shape.push_back(1);
  const bool one_hot = s_.mode == CategoryMode::kOneHot;
  const int64_t last = shape[shape.rank() - 1];
  // A row of the result per index, or per list of indices.
  const int64_t group = one_hot ? 1 : std::max<int64_t>(last, 1);
  if (!one_hot || (shape.rank() > 1 && last == 1)) {
    shape.erase(shape.rank() - 1);
  }
  const int64_t rows = shape.num_elements(), wide = depth();
  std::vector<float> values(static_cast<size_t>(rows * wide));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= wide) continue;
    const int64_t row = static_cast<int64_t>(i) / group;
    float& v = values[static_cast<size_t>(row * wide + indices[i])];
    const bool adds =
        s_.mode == CategoryMode::kCount || s_.mode == CategoryMode::kTfIdf;
    v = adds ? v + 1 : 1;
  }
  if (s_.mode == CategoryMode::kTfIdf) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] *= static_cast<float>(idf_[i % static_cast<size_t>(wide)]);
    }
  }
  shape.push_back(wide);
  return constant(values, shape, site);
}

template class Vocabulary<std::string>;
template class Vocabulary<int64_t>;

}  // namespace berth::keras
