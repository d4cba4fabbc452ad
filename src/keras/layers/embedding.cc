// Embedding and ReversibleEmbedding.

#include <algorithm>

#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class EmbeddingBase : public LayerBase {
 public:
  EmbeddingBase(int64_t in, int64_t out, EmbeddingOptions options, Site site,
                const char* type = "Embedding")
      : LayerBase(type, options.name, site),
        in_(in),
        out_(out),
        options_(std::move(options)) {
    state().casts.weights = false;
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
    const bool index = x.dtype() == int32 || x.dtype() == int64;
    const Tensor ids = index ? x : math::cast(x, int32, site());
    return {nn::embedding_lookup(rows_.value(site()), ids, site())};
  }

  Tensors compute_mask(const Tensors& x, const Tensors&) override {
    if (!options_.mask_zero) return {};
    return {math::not_equal(x[0], zeros_like(x[0], site()), site())};
  }

 protected:
  const int64_t in_, out_;
  const EmbeddingOptions options_;
  Variable rows_;
};

class ReversibleEmbeddingBase final : public EmbeddingBase {
 public:
  ReversibleEmbeddingBase(int64_t in, int64_t out, EmbeddingOptions options,
                          Site site)
      : EmbeddingBase(in, out, std::move(options), site,
                      "ReversibleEmbedding") {}

  Tensors call(const Tensors& inputs, bool training) override {
    const Tensor& x = one_input(state(), inputs);
    if (!is_floating(x.dtype())) return EmbeddingBase::call(inputs, training);
    const int rank = x.rank();
    if (rank < 2 || (x.shape()[rank - 1] >= 0 && x.shape()[rank - 1] != out_)) {
      fail_in(state(),
              "ReversibleEmbedding: got numbers {}; expected "
              "[n, ..., {}], or whole numbers to look up",
              x.shape().str(), out_);
    }
    const Tensor rows = rows_.value(site());
    const Tensor table =
        x.dtype() == rows.dtype() ? rows : math::cast(rows, x.dtype(), site());
    return {tensordot(x, table, {{rank - 1}, {1}}, site())};
  }

  // Numbers have no id that could be 0.
  Tensors compute_mask(const Tensors& x, const Tensors& masks) override {
    if (is_floating(x[0].dtype())) return LayerBase::compute_mask(x, masks);
    return EmbeddingBase::compute_mask(x, masks);
  }
};

void embedding_fields(Fields& f, int64_t& input_dim, int64_t& output_dim,
                      EmbeddingOptions& o) {
  f.must("input_dim", input_dim);
  f.must("output_dim", output_dim);
  f("embeddings_initializer", o.embeddings_initializer);
  f("mask_zero", o.mask_zero);
  f("embeddings_regularizer", o.embeddings_regularizer);
  f("embeddings_constraint", o.embeddings_constraint);
}

}  // namespace

Embedding::Embedding(int64_t input_dim, int64_t output_dim,
                     EmbeddingOptions options, Site site)
    : Layer(described<EmbeddingBase, embedding_fields>(
          site, input_dim, output_dim, std::move(options))) {}

ReversibleEmbedding::ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                                         EmbeddingOptions options, Site site)
    : Layer(described<ReversibleEmbeddingBase, embedding_fields>(
          site, input_dim, output_dim, std::move(options))) {}

void add_embedding_classes(Classes& c) {
  c.layers["Embedding"] = &layer_of<Embedding, embedding_fields>;
  c.layers["ReversibleEmbedding"] =
      &layer_of<ReversibleEmbedding, embedding_fields>;
}

}  // namespace berth::keras
