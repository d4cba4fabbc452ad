// Hashing and HashedCrossing: values as bins of their hashes.

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
#include "keras/layers/text_hashes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

// Values as the text that is hashed; fractions are cut off.
std::vector<std::string> hashed_texts(const LayerState& s, const Tensor& x) {
  check_has_values(s, x);
  if (x.dtype() == string_) return x.to_vector<std::string>();
  if (!is_integer(x.dtype()) && !is_floating(x.dtype())) {
    fail_in(s, "{}: the input is of {}; expected text or numbers", s.type,
            name_of(x.dtype()));
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
      fail_in(state(),
              "HashedCrossing: output_mode is \"{}\"; expected int or one_hot",
              o.output_mode);
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
        fail_in(state(),
                "HashedCrossing: an input is {}; expected text or "
                "whole numbers, all of one shape",
                t.spec().str());
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
void hashing_fields(Fields& f, int64_t& num_bins, HashingOptions& o) {
  f.must("num_bins", num_bins);
  token_field(f, "mask_value", o.mask_value);
  salt_field(f, o.salt);
  f("output_mode", o.output_mode);
}
void hashed_crossing_fields(Fields& f, int64_t& num_bins,
                            HashedCrossingOptions& o) {
  f.must("num_bins", num_bins);
  f("output_mode", o.output_mode);
}

}  // namespace

Hashing::Hashing(int64_t num_bins, HashingOptions o, Site site)
    : Layer(described<HashingBase, hashing_fields>(site, num_bins,
                                                   std::move(o))) {}
HashedCrossing::HashedCrossing(int64_t num_bins, HashedCrossingOptions o,
                               Site site)
    : Layer(described<HashedCrossingBase, hashed_crossing_fields>(
          site, num_bins, std::move(o))) {}

void add_hashing_classes(Classes& c) {
  c.layers["Hashing"] = &layer_of<Hashing, hashing_fields>;
  c.layers["HashedCrossing"] =
      &layer_of<HashedCrossing, hashed_crossing_fields>;
}

}  // namespace berth::keras
