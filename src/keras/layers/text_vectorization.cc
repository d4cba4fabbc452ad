// TextVectorization.

#include <algorithm>

#include "berth/ops/array.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
#include "keras/layers/vocabulary.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

using Words = std::vector<std::string>;

std::string lower_ascii(std::string s) {
  for (char& c : s) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return s;
}

bool is_sign(char c) {
  return std::string_view("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'").find(c) !=
         std::string_view::npos;
}
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

Words split_at_blanks(const std::string& s) {
  Words words;
  for (size_t i = 0; i < s.size();) {
    if (is_blank(s[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < s.size() && !is_blank(s[end])) ++end;
    words.push_back(s.substr(i, end - i));
    i = end;
  }
  return words;
}

// Bytes of the UTF-8 character at `at`; 0 when there is none.
size_t utf8_length(const std::string& s, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool bad =
      (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return bad ? 0 : n;
}

Words split_characters(const std::string& s) {
  Words words;
  for (size_t i = 0; i < s.size();) {
    const size_t n = utf8_length(s, i);
    words.push_back(n == 0 ? "\xef\xbf\xbd" : s.substr(i, n));
    i += std::max<size_t>(n, 1);
  }
  return words;
}

class TextVectorizationBase final : public LayerBase {
 public:
  TextVectorizationBase(TextVectorizationOptions o, Site site)
      : LayerBase("TextVectorization", o.name, site),
        o_(std::move(o)),
        mode_(category_mode_of(state(), o_.output_mode, true)),
        words_(state(), {.max_tokens = o_.max_tokens,
                         .mask = std::string(),
                         .oov = "[UNK]",
                         .mode = mode_,
                         .pad = o_.pad_to_max_tokens}),
        fixed_(!o_.vocabulary.empty() || !o_.vocabulary_file.empty()) {
    check_options();
    state().on_host = true;
    if (!o_.vocabulary.empty()) {
      words_.set(o_.vocabulary, o_.idf_weights);
    } else if (!o_.vocabulary_file.empty()) {
      words_.load(o_.vocabulary_file);
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (words_.tokens().empty()) {
      fail(
          "TextVectorization: has no vocabulary; expected one, or adapt() "
          "first");
    }
    const std::vector<Words> texts = split_texts(x);
    size_t length = 0;
    for (const Words& t : texts) length = std::max(length, t.size());
    if (o_.output_sequence_length) {
      length = static_cast<size_t>(*o_.output_sequence_length);
    }
    const int64_t none = mode_ == CategoryMode::kInt ? 0 : -1;
    std::vector<int64_t> indices;
    indices.reserve(texts.size() * length);
    for (const Words& t : texts) {
      for (size_t i = 0; i < length; ++i) {
        indices.push_back(i < t.size() ? words_.index_of(t[i]) : none);
      }
    }
    const auto n = static_cast<int64_t>(texts.size());
    if (mode_ != CategoryMode::kInt && length == 0) {
      return {zeros({n, words_.depth()}, float32, site())};
    }
    return {words_.encode(indices, {n, static_cast<int64_t>(length)}, site())};
  }

  void adapt(const AdaptData& data) {
    if (fixed_) {
      fail(
          "TextVectorization: adapt() of a layer that was given a vocabulary; "
          "expected one without");
    }
    words_.begin();
    each_batch(data, [&](const Tensor& batch) {
      for (const Words& t : split_texts(batch)) words_.count(t);
    });
    words_.finish();
  }
  Vocabulary<std::string>& words() { return words_; }
  const TextVectorizationOptions& options() const { return o_; }

 private:
  void check_options() const {
    const auto& s = o_.standardize;
    if (!s.empty() && s != "lower" && s != "strip_punctuation" &&
        s != "lower_and_strip_punctuation") {
      fail_in(state(),
              "TextVectorization: standardize is \"{}\"; expected lower, "
              "strip_punctuation, lower_and_strip_punctuation or nothing",
              s);
    }
    if (!o_.split.empty() && o_.split != "whitespace" &&
        o_.split != "character") {
      fail_in(state(),
              "TextVectorization: split is \"{}\"; expected "
              "whitespace, character or nothing",
              o_.split);
    }
    if (mode_ == CategoryMode::kOneHot) {
      fail(
          "TextVectorization: output_mode is \"one_hot\"; expected int, "
          "multi_hot, count or tf_idf");
    }
    if (o_.output_sequence_length) {
      check_positive(state(), "output_sequence_length",
                     *o_.output_sequence_length);
      if (mode_ != CategoryMode::kInt) {
        fail(
            "TextVectorization: output_sequence_length is given; expected "
            "output_mode \"int\" with it");
      }
    }
    if (!o_.ngrams) return;
    for (int64_t n : o_.ngrams->widths) check_positive(state(), "ngrams", n);
  }

  std::string standardized(std::string s) const {
    if (o_.standardize_fn) return o_.standardize_fn(s);
    if (o_.standardize.starts_with("lower")) s = lower_ascii(std::move(s));
    if (o_.standardize.ends_with("strip_punctuation"))
      std::erase_if(s, is_sign);
    return s;
  }

  // All words, then all pairs, ..., joined by blanks.
  Words with_ngrams(const Words& words) const {
    if (!o_.ngrams) return words;
    Words all;
    for (int64_t width : o_.ngrams->widths) {
      const auto n = static_cast<size_t>(width);
      for (size_t i = 0; i + n <= words.size(); ++i) {
        std::string joined = words[i];
        for (size_t k = 1; k < n; ++k) joined += " " + words[i + k];
        all.push_back(std::move(joined));
      }
    }
    return all;
  }

  // The words of each text.
  std::vector<Words> split_texts(const Tensor& x) const {
    check_has_values(state(), x);
    const bool splits = o_.split_fn || !o_.split.empty();
    const bool good =
        x.rank() <= 1 || (x.rank() == 2 && (!splits || x.shape()[1] == 1));
    if (x.dtype() != string_ || !good) {
      fail_in(state(),
              "TextVectorization: the input is {}; expected text, "
              "[n] or [n, 1]",
              x.spec().str());
    }
    const Words all = x.to_vector<std::string>();
    const size_t width =
        !splits && x.rank() == 2 ? static_cast<size_t>(x.shape()[1]) : 1;
    std::vector<Words> texts;
    for (size_t i = 0; i < all.size(); i += width) {
      Words words;
      for (size_t k = i; k < i + width; ++k) {
        const std::string s = standardized(all[k]);
        if (!splits) {
          words.push_back(s);
        } else {
          words = o_.split_fn               ? o_.split_fn(s)
                  : o_.split == "character" ? split_characters(s)
                                            : split_at_blanks(s);
        }
      }
      texts.push_back(with_ngrams(words));
    }
    return texts;
  }

  const TextVectorizationOptions o_;
  const CategoryMode mode_;
  Vocabulary<std::string> words_;
  const bool fixed_;
};

TextVectorizationBase& texts_of(const Layer& l) {
  return static_cast<TextVectorizationBase&>(*l.base());
}

void text_vectorization_fields(Fields& f, TextVectorizationOptions& o) {
  if (o.standardize_fn || o.split_fn) {
    f.fail("standardize", "a function",
           "a name: functions are not written into configs");
  }
  f("max_tokens", o.max_tokens);
  f("standardize", o.standardize);
  f("split", o.split);
  std::vector<int64_t> widths;
  if (o.ngrams) widths = o.ngrams->widths;
  if (f.reading() || o.ngrams) f("ngrams", widths);
  if (f.reading() && !widths.empty()) {
    o.ngrams.emplace(1);
    o.ngrams->widths = widths;
  }
  f("output_mode", o.output_mode);
  f("output_sequence_length", o.output_sequence_length);
  f("pad_to_max_tokens", o.pad_to_max_tokens);
  f("vocabulary", o.vocabulary);
  f("idf_weights", o.idf_weights);
}

// What the layer was made of, with the vocabulary that it has now.
void describe_texts(const Layer& layer) {
  TextVectorizationBase& base = texts_of(layer);
  TextVectorizationOptions o = base.options();
  o.vocabulary = base.words().all(true);
  o.vocabulary_file.clear();
  o.idf_weights = base.words().idf();
  o.idf_weights.resize(std::min(o.idf_weights.size(), o.vocabulary.size()));
  o.name = layer.name();
  describe<text_vectorization_fields>(layer, std::move(o));
}

}  // namespace

TextVectorization::TextVectorization(TextVectorizationOptions o, Site site)
    : Layer(make_layer<TextVectorizationBase>(std::move(o), site)) {
  describe_texts(*this);
}
void TextVectorization::adapt(const AdaptData& data) {
  texts_of(*this).adapt(data);
  describe_texts(*this);
}
void TextVectorization::set_vocabulary(const Words& vocabulary,
                                       const std::vector<double>& idf) {
  texts_of(*this).words().set(vocabulary, idf);
  describe_texts(*this);
}
Words TextVectorization::get_vocabulary(bool special) const {
  return texts_of(*this).words().all(special);
}
int64_t TextVectorization::vocabulary_size() const {
  return texts_of(*this).words().size();
}

void add_text_classes(Classes& c) {
  c.layers["TextVectorization"] =
      &layer_of<TextVectorization, text_vectorization_fields>;
}

}  // namespace berth::keras
