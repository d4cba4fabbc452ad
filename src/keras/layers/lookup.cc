// IntegerLookup, StringLookup, Hashing and HashedCrossing.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
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
      fail(fmt::format("{}: has no vocabulary; expected one, or adapt() first",
                       state().type));
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
      fail(
          fmt::format("{}: adapt() of a layer that was given a vocabulary; "
                      "expected one without",
                      state().type));
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
      fail(fmt::format("{}: the input is of {}; expected {}", state().type,
                       name_of(x.dtype()), kText ? "text" : "whole numbers"));
    }
    return x.to_vector<Key>();
  }

  Tensor inverted(const Tensor& x) const {
    if (!is_integer(x.dtype())) {
      fail(fmt::format("{}: the input is of {}; expected indices", state().type,
                       name_of(x.dtype())));
    }
    std::vector<Key> tokens;
    for (int64_t i : x.to_vector<int64_t>()) {
      tokens.push_back(words_.token_of(i));
    }
    return constant(tokens, x.shape(), site());
  }

  // The same by ops: the place among the sorted tokens, if it is one.
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
        fail(
            fmt::format("{}: the input is {}; expected at most one unknown "
                        "dimension",
                        state().type, x.shape().str()));
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

// Values as the text that is hashed; fractions are cut off.
std::vector<std::string> hashed_texts(const LayerState& s, const Tensor& x) {
  check_has_values(s, x);
  if (x.dtype() == string_) return x.to_vector<std::string>();
  if (!is_integer(x.dtype()) && !is_floating(x.dtype())) {
    fail_in(s, fmt::format("{}: the input is of {}; expected text or numbers",
                           s.type, name_of(x.dtype())));
  }
  std::vector<std::string> texts;
  for (int64_t v : x.to_vector<int64_t>()) texts.push_back(std::to_string(v));
  return texts;
}

class HashingBase final : public LayerBase {
 public:
  HashingBase(int64_t bins, const HashingOptions& o, Site site)
      : LayerBase("Hashing", o.name, site),
        bins_(bins),
        o_(o),
        mode_(category_mode_of(state(), o.output_mode, false)) {
    check_positive(state(), "num_bins", bins_);
    state().on_host = true;
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    const bool masked = o_.mask_value && bins_ > 1;
    const auto n = static_cast<uint64_t>(masked ? bins_ - 1 : bins_);
    std::vector<int64_t> bins;
    for (const std::string& text : hashed_texts(state(), x)) {
      if (masked && text == *o_.mask_value) {
        bins.push_back(0);
        continue;
      }
      const uint64_t hash =
          o_.salt ? salted_hash(text, *o_.salt) : fast_hash(text);
      bins.push_back(static_cast<int64_t>(hash % n) + (masked ? 1 : 0));
    }
    return {encoded(constant(bins, x.shape(), site()), mode_, bins_, {}, {},
                    site())};
  }

 private:
  const int64_t bins_;
  const HashingOptions o_;
  const CategoryMode mode_;
};

// TensorFlow's way to add a number to a hash, and what it begins with.
uint64_t joined_hash(uint64_t hash, uint64_t next) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995u;
  const auto mix = [](uint64_t v) { return v ^ (v >> 47); };
  hash ^= kFactor;
  hash ^= mix(next * kFactor) * kFactor;
  hash *= kFactor;
  hash = mix(hash) * kFactor;
  return mix(hash);
}
constexpr uint64_t kFirstHash = 0xDECAFCAFFE;

class HashedCrossingBase final : public LayerBase {
 public:
  HashedCrossingBase(int64_t bins, const HashedCrossingOptions& o, Site site)
      : LayerBase("HashedCrossing", o.name, site),
        bins_(bins),
        mode_(category_mode_of(state(), o.output_mode, false)) {
    check_positive(state(), "num_bins", bins_);
    state().on_host = true;
    if (mode_ != CategoryMode::kInt && mode_ != CategoryMode::kOneHot) {
      fail(
          fmt::format("HashedCrossing: output_mode is \"{}\"; expected int or "
                      "one_hot",
                      o.output_mode));
    }
  }

  Tensors call(const Tensors& x, bool) override {
    if (x.size() < 2) fail("HashedCrossing: expected two inputs or more");
    std::vector<uint64_t> hashes(
        static_cast<size_t>(std::max<int64_t>(x[0].num_elements(), 0)),
        kFirstHash);
    for (const Tensor& t : x) {
      check_has_values(state(), t);
      if (!(t.shape() == x[0].shape()) ||
          (t.dtype() != string_ && !is_integer(t.dtype()))) {
        fail(
            fmt::format("HashedCrossing: an input is {}; expected text or "
                        "whole numbers, all of one shape",
                        t.spec().str()));
      }
      add(t, &hashes);
    }
    std::vector<int64_t> bins;
    for (uint64_t h : hashes) {
      bins.push_back(static_cast<int64_t>(h % static_cast<uint64_t>(bins_)));
    }
    return {encoded(constant(bins, x[0].shape(), site()), mode_, bins_, {}, {},
                    site())};
  }

 private:
  static void add(const Tensor& x, std::vector<uint64_t>* hashes) {
    if (x.dtype() == string_) {
      const auto texts = x.to_vector<std::string>();
      for (size_t i = 0; i < texts.size(); ++i) {
        (*hashes)[i] = joined_hash((*hashes)[i], fast_hash(texts[i]));
      }
      return;
    }
    const auto values = x.to_vector<int64_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      (*hashes)[i] =
          joined_hash((*hashes)[i], static_cast<uint64_t>(values[i]));
    }
  }

  const int64_t bins_;
  const CategoryMode mode_;
};

template <class Token>
void token_field(Fields& f, const char* name, std::optional<Token>& token) {
  if (f.reading() ? !f.get(name).has_value() : !token) {
    if (!f.reading()) f.put(name, nullptr);
    return;
  }
  Token value = token.value_or(Token());
  f(name, value);
  token = std::move(value);
}

// [first, second], or null.
void salt_field(Fields& f, std::optional<Salt>& salt) {
  std::vector<int64_t> v;
  if (salt) {
    v = {static_cast<int64_t>(salt->first), static_cast<int64_t>(salt->second)};
  }
  if (f.reading() || salt) f("salt", v);
  if (!f.reading() || v.empty()) return;
  salt =
      Salt(static_cast<uint64_t>(v.front()), static_cast<uint64_t>(v.back()));
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
  f("name", o.name);
}
struct IntegerLookupArgs {
  IntegerLookupOptions o;
  void fields(Fields& f) { lookup_fields(f, o); }
  Layer make(Site site) const { return IntegerLookup(o, site); }
};
struct StringLookupArgs {
  StringLookupOptions o;
  void fields(Fields& f) {
    lookup_fields(f, o);
    salt_field(f, o.salt);
  }
  Layer make(Site site) const { return StringLookup(o, site); }
};
struct HashingArgs {
  int64_t num_bins = 1;
  HashingOptions o;
  void fields(Fields& f) {
    f.must("num_bins", num_bins);
    token_field(f, "mask_value", o.mask_value);
    salt_field(f, o.salt);
    f("output_mode", o.output_mode);
    f("name", o.name);
  }
  Layer make(Site site) const { return Hashing(num_bins, o, site); }
};
struct HashedCrossingArgs {
  int64_t num_bins = 1;
  HashedCrossingOptions o;
  void fields(Fields& f) {
    f.must("num_bins", num_bins);
    f("output_mode", o.output_mode);
    f("name", o.name);
  }
  Layer make(Site site) const { return HashedCrossing(num_bins, o, site); }
};

// What the layer was made of, with the vocabulary that it has now.
template <class Args, class Options, class Words>
void describe_lookup(const Layer& layer, Options o, const Words& words) {
  o.vocabulary = words.all(true);
  o.vocabulary_file.clear();
  o.idf_weights = words.idf();
  o.idf_weights.resize(std::min(o.idf_weights.size(), o.vocabulary.size()));
  o.name = layer.name();
  describe(layer, Args{std::move(o)});
}

}  // namespace

IntegerLookup::IntegerLookup(IntegerLookupOptions o, Site site)
    : Layer(integer_lookup(o, site)) {
  describe_lookup<IntegerLookupArgs>(*this, o, integers(*this).words());
  integers(*this).note(std::move(o));
}
void IntegerLookup::adapt(const AdaptData& data) {
  integers(*this).adapt(data);
  describe_lookup<IntegerLookupArgs>(*this, integers(*this).made_of(),
                                     integers(*this).words());
}
void IntegerLookup::set_vocabulary(const std::vector<int64_t>& vocabulary,
                                   const std::vector<double>& idf) {
  integers(*this).set_vocabulary(vocabulary, idf);
  describe_lookup<IntegerLookupArgs>(*this, integers(*this).made_of(),
                                     integers(*this).words());
}
std::vector<int64_t> IntegerLookup::get_vocabulary(bool special) const {
  return integers(*this).words().all(special);
}
int64_t IntegerLookup::vocabulary_size() const {
  return integers(*this).words().size();
}

StringLookup::StringLookup(StringLookupOptions o, Site site)
    : Layer(string_lookup(o, site)) {
  describe_lookup<StringLookupArgs>(*this, o, strings(*this).words());
  strings(*this).note(std::move(o));
}
void StringLookup::adapt(const AdaptData& data) {
  strings(*this).adapt(data);
  describe_lookup<StringLookupArgs>(*this, strings(*this).made_of(),
                                    strings(*this).words());
}
void StringLookup::set_vocabulary(const std::vector<std::string>& vocabulary,
                                  const std::vector<double>& idf) {
  strings(*this).set_vocabulary(vocabulary, idf);
  describe_lookup<StringLookupArgs>(*this, strings(*this).made_of(),
                                    strings(*this).words());
}
std::vector<std::string> StringLookup::get_vocabulary(bool special) const {
  return strings(*this).words().all(special);
}
int64_t StringLookup::vocabulary_size() const {
  return strings(*this).words().size();
}

Hashing::Hashing(int64_t num_bins, HashingOptions o, Site site)
    : Layer(make_layer<HashingBase>(num_bins, o, site)) {
  describe(*this, HashingArgs{num_bins, std::move(o)});
}
HashedCrossing::HashedCrossing(int64_t num_bins, HashedCrossingOptions o,
                               Site site)
    : Layer(make_layer<HashedCrossingBase>(num_bins, o, site)) {
  describe(*this, HashedCrossingArgs{num_bins, std::move(o)});
}

void add_lookup_classes(Classes& c);
void add_lookup_classes(Classes& c) {
  c.layers["IntegerLookup"] = &layer_of<IntegerLookupArgs>;
  c.layers["StringLookup"] = &layer_of<StringLookupArgs>;
  c.layers["Hashing"] = &layer_of<HashingArgs>;
  c.layers["HashedCrossing"] = &layer_of<HashedCrossingArgs>;
}

}  // namespace berth::keras
