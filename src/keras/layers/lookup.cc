// IntegerLookup and StringLookup.

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
#include "keras/layers/vocabulary.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

template <class Key>
class LookupBase final : public LayerBase {
 public:
  using Words = Vocabulary<Key>;

  template <class Given>
  LookupBase(const char* type, const Given& o,
             typename Words::Settings settings, Site site)
      : LayerBase(type, o.name, site),
        words_(state(), of_mode(o.output_mode, std::move(settings))),
        fixed_(!o.vocabulary.empty() || !o.vocabulary_file.empty()) {
    state().on_host = true;
    if (!o.vocabulary.empty()) {
      words_.set(o.vocabulary, o.idf_weights);
    } else if (!o.vocabulary_file.empty()) {
      words_.load(o.vocabulary_file);
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (words_.tokens().empty()) {
      fail_in(state(), "{}: has no vocabulary; expected one, or adapt() first",
              state().type);
    }
    if constexpr (std::is_same_v<Key, int64_t>) {
      if (x.is_symbolic()) return {traced(x)};
    }
    check_has_values(state(), x);
    if (words_.settings().invert) return {inverted(x)};
    std::vector<int64_t> indices;
    for (const Key& token : values_of(x)) {
      indices.push_back(words_.index_of(token));
    }
    return {words_.encode(indices, x.shape(), site())};
  }

  void adapt(const AdaptData& data) {
    if (fixed_) {
      fail_in(state(),
              "{}: adapt() of a layer that was given a vocabulary; "
              "expected one without",
              state().type);
    }
    words_.begin();
    each_batch(data, [&](const Tensor& batch) { count(batch, data); });
    words_.finish();
  }
  void set_vocabulary(const std::vector<Key>& vocabulary,
                      const std::vector<double>& idf) {
    words_.set(vocabulary, idf);
  }
  const Words& words() const { return words_; }

  using Options = std::conditional_t<std::is_same_v<Key, int64_t>,
                                     IntegerLookupOptions, StringLookupOptions>;
  void note(Options made_of) { made_of_ = std::move(made_of); }
  const Options& made_of() const { return made_of_; }

 private:
  typename Words::Settings of_mode(const std::string& mode,
                                   typename Words::Settings settings) const {
    settings.mode = category_mode_of(state(), mode, true);
    return settings;
  }

  // Rows are documents; a batch of rank 1 is one.
  void count(const Tensor& batch, const AdaptData& data) {
    const std::vector<Key> all = values_of(batch);
    const int64_t n = static_cast<int64_t>(all.size());
    int64_t rows = batch.rank() > 1 ? batch.shape()[0] : 1;
    if (batch.rank() == 1 && !data.batches) rows = n;
    const int64_t width = rows == 0 ? 0 : n / rows;
    for (int64_t i = 0; i < rows; ++i) {
      words_.count({all.begin() + i * width, all.begin() + (i + 1) * width});
    }
  }

  std::vector<Key> values_of(const Tensor& x) const {
    constexpr bool kText = std::is_same_v<Key, std::string>;
    if (kText ? x.dtype() != string_ : !is_integer(x.dtype())) {
      fail_in(state(), "{}: the input is of {}; expected {}", state().type,
              name_of(x.dtype()), kText ? "text" : "whole numbers");
    }
    return x.to_vector<Key>();
  }

  Tensor inverted(const Tensor& x) const {
    if (!is_integer(x.dtype())) {
      fail_in(state(), "{}: the input is of {}; expected indices", state().type,
              name_of(x.dtype()));
    }
    std::vector<Key> tokens;
    for (int64_t i : x.to_vector<int64_t>()) {
      tokens.push_back(words_.token_of(i));
    }
    return constant(tokens, x.shape(), site());
  }

  // Looks up by ops: the place among the sorted tokens, if it is one.
  Tensor traced(const Tensor& input) const {
    if constexpr (std::is_same_v<Key, std::string>) {
      return input;
    } else {
      const auto& s = words_.settings();
      if (s.invert) check_has_values(state(), input);
      std::vector<std::pair<int64_t, int64_t>> list;
      for (size_t i = 0; i < words_.tokens().size(); ++i) {
        list.emplace_back(words_.tokens()[i],
                          words_.token_start() + static_cast<int64_t>(i));
      }
      if (s.mask) list.emplace_back(*s.mask, words_.oov_start() == 1 ? 0 : -1);
      std::sort(list.begin(), list.end());
      std::vector<int64_t> keys, places;
      for (const auto& [key, place] : list) {
        keys.push_back(key);
        places.push_back(place);
      }
      const int64_t n = static_cast<int64_t>(keys.size());
      const Tensor x = math::cast(input, int64, site());
      const Tensor flat = reshape(x, {kUnknownDim}, site());
      const Tensor sorted = constant(keys, {n}, site());
      const Tensor at =
          math::minimum(searchsorted(sorted, flat, {.out_type = int64}, site()),
                        constant(n - 1, site()), site());
      Tensor oov = fill({}, s.num_oov == 0 ? -1.0 : double(words_.oov_start()),
                        int64, site());
      if (s.num_oov > 1) {
        oov =
            math::add(math::floormod(flat, constant(s.num_oov, site()), site()),
                      oov, site());
      }
      const Tensor known =
          math::equal(gather(sorted, at, 0, site()), flat, site());
      const Tensor found = gather(constant(places, {n}, site()), at, 0, site());
      const Tensor indices = where(known, found, oov, site());
      Shape shape = x.shape();
      int unknown = 0;
      for (int i = 0; i < shape.rank(); ++i) {
        if (shape[i] < 0) shape[i] = kUnknownDim;
        unknown += shape[i] < 0;
      }
      if (unknown > 1) {
        fail_in(state(),
                "{}: the input is {}; expected at most one unknown dimension",
                state().type, x.shape().str());
      }
      return encoded(reshape(indices, shape, site()), s.mode, words_.depth(),
                     {}, words_.idf(), site());
    }
  }

  Words words_;
  const bool fixed_;
  Options made_of_;
};

using IntegerLookupBase = LookupBase<int64_t>;
using StringLookupBase = LookupBase<std::string>;

Layer integer_lookup(const IntegerLookupOptions& o, Site site) {
  return make_layer<IntegerLookupBase>(
      "IntegerLookup", o,
      Vocabulary<int64_t>::Settings{.max_tokens = o.max_tokens,
                                    .num_oov = o.num_oov_indices,
                                    .mask = o.mask_token,
                                    .oov = o.oov_token,
                                    .invert = o.invert,
                                    .pad = o.pad_to_max_tokens},
      site);
}

Layer string_lookup(const StringLookupOptions& o, Site site) {
  return make_layer<StringLookupBase>(
      "StringLookup", o,
      Vocabulary<std::string>::Settings{.max_tokens = o.max_tokens,
                                        .num_oov = o.num_oov_indices,
                                        .mask = o.mask_token,
                                        .oov = o.oov_token,
                                        .invert = o.invert,
                                        .pad = o.pad_to_max_tokens,
                                        .salt = o.salt},
      site);
}

IntegerLookupBase& integers(const Layer& l) {
  return static_cast<IntegerLookupBase&>(*l.base());
}
StringLookupBase& strings(const Layer& l) {
  return static_cast<StringLookupBase&>(*l.base());
}

// Fields that both lookups have.
template <class Options>
void lookup_fields(Fields& f, Options& o) {
  f("max_tokens", o.max_tokens);
  f("num_oov_indices", o.num_oov_indices);
  token_field(f, "mask_token", o.mask_token);
  f("oov_token", o.oov_token);
  f("vocabulary", o.vocabulary);
  f("idf_weights", o.idf_weights);
  f("invert", o.invert);
  f("output_mode", o.output_mode);
  f("pad_to_max_tokens", o.pad_to_max_tokens);
}
void string_lookup_fields(Fields& f, StringLookupOptions& o) {
  lookup_fields(f, o);
  salt_field(f, o.salt);
}

// What the layer was made of, with the vocabulary that it has now.
template <auto kFields, class Options, class Words>
void describe_lookup(const Layer& layer, Options o, const Words& words) {
  o.vocabulary = words.all(true);
  o.vocabulary_file.clear();
  o.idf_weights = words.idf();
  o.idf_weights.resize(std::min(o.idf_weights.size(), o.vocabulary.size()));
  o.name = layer.name();
  describe<kFields>(layer, std::move(o));
}

}  // namespace

IntegerLookup::IntegerLookup(IntegerLookupOptions o, Site site)
    : Layer(integer_lookup(o, site)) {
  describe_lookup<lookup_fields<IntegerLookupOptions>>(*this, o,
                                                       integers(*this).words());
  integers(*this).note(std::move(o));
}
void IntegerLookup::adapt(const AdaptData& data) {
  integers(*this).adapt(data);
  describe_lookup<lookup_fields<IntegerLookupOptions>>(
      *this, integers(*this).made_of(), integers(*this).words());
}
void IntegerLookup::set_vocabulary(const std::vector<int64_t>& vocabulary,
                                   const std::vector<double>& idf) {
  integers(*this).set_vocabulary(vocabulary, idf);
  describe_lookup<lookup_fields<IntegerLookupOptions>>(
      *this, integers(*this).made_of(), integers(*this).words());
}
std::vector<int64_t> IntegerLookup::get_vocabulary(bool special) const {
  return integers(*this).words().all(special);
}
int64_t IntegerLookup::vocabulary_size() const {
  return integers(*this).words().size();
}

StringLookup::StringLookup(StringLookupOptions o, Site site)
    : Layer(string_lookup(o, site)) {
  describe_lookup<string_lookup_fields>(*this, o, strings(*this).words());
  strings(*this).note(std::move(o));
}
void StringLookup::adapt(const AdaptData& data) {
  strings(*this).adapt(data);
  describe_lookup<string_lookup_fields>(*this, strings(*this).made_of(),
                                        strings(*this).words());
}
void StringLookup::set_vocabulary(const std::vector<std::string>& vocabulary,
                                  const std::vector<double>& idf) {
  strings(*this).set_vocabulary(vocabulary, idf);
  describe_lookup<string_lookup_fields>(*this, strings(*this).made_of(),
                                        strings(*this).words());
}
std::vector<std::string> StringLookup::get_vocabulary(bool special) const {
  return strings(*this).words().all(special);
}
int64_t StringLookup::vocabulary_size() const {
  return strings(*this).words().size();
}

void add_lookup_classes(Classes& c) {
  c.layers["IntegerLookup"] =
      &layer_of<IntegerLookup, lookup_fields<IntegerLookupOptions>>;
  c.layers["StringLookup"] = &layer_of<StringLookup, string_lookup_fields>;
}

}  // namespace berth::keras
