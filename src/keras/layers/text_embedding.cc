// The ends of language models: tied embeddings, positions, masks of padding.

#include "keras/layers/text_embedding.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/classes.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class ReversibleEmbeddingBase final : public LayerBase {
 public:
  ReversibleEmbeddingBase(int64_t in, int64_t out, EmbeddingOptions options,
                          Site site)
      : LayerBase("ReversibleEmbedding", options.name, site),
        in_(in),
        out_(out),
        options_(std::move(options)) {
    state().casts_weights = false;
    check_positive(state(), "input_dim", in_);
    check_positive(state(), "output_dim", out_);
  }

  void build(const std::vector<Shape>&) override {
    rows_ =
        add_weight("embeddings", {in_, out_}, options_.embeddings_initializer,
                   {.regularizer = options_.embeddings_regularizer,
                    .constraint = options_.embeddings_constraint});
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    const Tensor rows = rows_.value(site());
    if (!is_floating(x.dtype())) {
      const bool index = x.dtype() == int32 || x.dtype() == int64;
      return {nn::embedding_lookup(
          rows, index ? x : math::cast(x, int32, site()), site())};
    }
    const int rank = x.rank();
    if (rank < 2 || (x.shape()[rank - 1] >= 0 && x.shape()[rank - 1] != out_)) {
      fail(
          fmt::format("ReversibleEmbedding: got numbers {}; expected "
                      "[n, ..., {}], or whole numbers to look up",
                      x.shape().str(), out_));
    }
    const Tensor table =
        x.dtype() == rows.dtype() ? rows : math::cast(rows, x.dtype(), site());
    return {tensordot(x, table, {{rank - 1}, {1}}, site())};
  }

 private:
  const int64_t in_, out_;
  const EmbeddingOptions options_;
  Variable rows_;
};

struct ReversibleEmbeddingArgs {
  int64_t input_dim = 0, output_dim = 0;
  EmbeddingOptions o;
  void fields(Fields& f) {
    f.must("input_dim", input_dim);
    f.must("output_dim", output_dim);
    f("embeddings_initializer", o.embeddings_initializer);
    f("mask_zero", o.mask_zero);
    f("embeddings_regularizer", o.embeddings_regularizer);
    f("embeddings_constraint", o.embeddings_constraint);
    f("name", o.name);
  }
  Layer make(Site site) const {
    return ReversibleEmbedding(input_dim, output_dim, o, site);
  }
};

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
    fail(
        fmt::format("PositionEmbedding: got {}; expected [n, s, d] with s of "
                    "at most {}",
                    x.str(), length_));
  }

  const int64_t length_;
  const PositionEmbeddingOptions options_;
  Variable rows_;
};

struct PositionEmbeddingArgs {
  int64_t sequence_length = 0;
  PositionEmbeddingOptions o;
  void fields(Fields& f) {
    f.must("sequence_length", sequence_length);
    f("initializer", o.initializer);
    f("name", o.name);
  }
  Layer make(Site site) const {
    return PositionEmbedding(sequence_length, o, site);
  }
};

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

struct PaddingMaskArgs {
  std::string name;
  void fields(Fields& f) { f("name", name); }
  Layer make(Site site) const { return padding_mask(name, site); }
};

}  // namespace

ReversibleEmbedding::ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                                         EmbeddingOptions options, Site site)
    : Layer(std::make_shared<ReversibleEmbeddingBase>(input_dim, output_dim,
                                                      options, site)) {
  describe(*this,
           ReversibleEmbeddingArgs{input_dim, output_dim, std::move(options)});
}

PositionEmbedding::PositionEmbedding(int64_t sequence_length,
                                     PositionEmbeddingOptions options,
                                     Site site)
    : Layer(std::make_shared<PositionEmbeddingBase>(sequence_length, options,
                                                    site)) {
  describe(*this, PositionEmbeddingArgs{sequence_length, std::move(options)});
}

Layer padding_mask(const std::string& name, Site site) {
  Layer layer(std::make_shared<PaddingMaskBase>(name, site));
  describe(layer, PaddingMaskArgs{name});
  return layer;
}

void add_text_embedding_classes(Classes& c);
void add_text_embedding_classes(Classes& c) {
  c.layers["ReversibleEmbedding"] = &layer_of<ReversibleEmbeddingArgs>;
  c.layers["PositionEmbedding"] = &layer_of<PositionEmbeddingArgs>;
  c.layers["PaddingMask"] = &layer_of<PaddingMaskArgs>;
}

}  // namespace berth::keras
