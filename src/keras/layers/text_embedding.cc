// What language models begin with: positions, masks of padding.

#include "keras/layers/text_embedding.h"

#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class PositionEmbeddingBase final : public LayerBase {
 public:
  PositionEmbeddingBase(int64_t length, PositionEmbeddingOptions options,
                        Site site)
      : LayerBase("PositionEmbedding", options.name, site),
        length_(length),
        options_(std::move(options)) {
    check_positive(state(), "sequence_length", length_);
  }

  void build(const std::vector<Shape>& in) override {
    check_length(in[0]);
    rows_ = add_weight("embeddings", {length_, known_channels(state(), in[0])},
                       options_.initializer);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    check_length(x.shape());
    const Tensor rows = rows_.value(site());
    const int64_t steps = x.shape()[1];
    const Tensor first = steps == length_ ? rows : rows[{slice(0, steps)}];
    return {math::add(x, first, site())};
  }

 private:
  void check_length(const Shape& x) const {
    if (x.rank() == 3 && x[1] >= 0 && x[1] <= length_) return;
    fail_in(state(),
            "PositionEmbedding: got {}; expected [n, s, d] with s of "
            "at most {}",
            x.str(), length_);
  }

  const int64_t length_;
  const PositionEmbeddingOptions options_;
  Variable rows_;
};

void position_embedding_fields(Fields& f, int64_t& sequence_length,
                               PositionEmbeddingOptions& o) {
  f.must("sequence_length", sequence_length);
  f("initializer", o.initializer);
}

class PaddingMaskBase final : public LayerBase {
 public:
  PaddingMaskBase(const std::string& name, Site site)
      : LayerBase("PaddingMask", name, site) {}
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    const Tensor real =
        math::not_equal(x, zeros_like(x, site()), site());  // [n, s]
    return {expand_dims(expand_dims(real, 1, site()), 1, site())};
  }
};

void padding_mask_fields(Fields& f, std::string& name) { f("name", name); }

}  // namespace

PositionEmbedding::PositionEmbedding(int64_t sequence_length,
                                     PositionEmbeddingOptions options,
                                     Site site)
    : Layer(described<PositionEmbeddingBase, position_embedding_fields>(
          site, sequence_length, std::move(options))) {}

Layer padding_mask(const std::string& name, Site site) {
  Layer layer(std::make_shared<PaddingMaskBase>(name, site));
  describe<padding_mask_fields>(layer, name);
  return layer;
}

void add_text_embedding_classes(Classes& c) {
  c.layers["PositionEmbedding"] =
      &layer_of<PositionEmbedding, position_embedding_fields>;
  c.layers["PaddingMask"] = &layer_of<padding_mask, padding_mask_fields>;
}

}  // namespace berth::keras
