#include <algorithm>

#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/classes.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class EmbeddingBase final : public LayerBase {
 public:
  EmbeddingBase(int64_t in, int64_t out, EmbeddingOptions options, Site site)
      : LayerBase("Embedding", options.name, site),
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
    const bool index = x.dtype() == int32 || x.dtype() == int64;
    const Tensor ids = index ? x : math::cast(x, int32, site());
    return {nn::embedding_lookup(rows_.value(site()), ids, site())};
  }

  Tensors compute_mask(const Tensors& x, const Tensors&) override {
    if (!options_.mask_zero) return {};
    return {math::not_equal(x[0], zeros_like(x[0], site()), site())};
  }

 private:
  const int64_t in_, out_;
  const EmbeddingOptions options_;
  Variable rows_;
};

struct EmbeddingArgs {
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
    return Embedding(input_dim, output_dim, o, site);
  }
};

}  // namespace

Embedding::Embedding(int64_t input_dim, int64_t output_dim,
                     EmbeddingOptions options, Site site)
    : Layer(std::make_shared<EmbeddingBase>(input_dim, output_dim, options,
                                            site)) {
  describe(*this, EmbeddingArgs{input_dim, output_dim, std::move(options)});
}

void add_embedding_classes(Classes& c);
void add_embedding_classes(Classes& c) {
  c.layers["Embedding"] = &layer_of<EmbeddingArgs>;
}

}  // namespace berth::keras
