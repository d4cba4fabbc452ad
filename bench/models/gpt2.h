// The small GPT-2 (Radford et al. 2019): 12 layers of width 768, 12 heads,
// norms before the parts, GELU by tanh, the head tied to the embedding, no
// dropout; AdamW. With its 50,257 tokens and 1,024 positions it has 124,439,808
// parameters.
//
// The bench trains it on 16 sequences of 512 tokens, with the embedding's rows
// rounded up to 50,304, a multiple of 64, as is usual on GPUs: no label names
// the rows beyond 50,257.
// What flows from layer to layer is of the dtype that it computes in; the loss
// is float32.

#ifndef BERTH_BENCH_MODELS_GPT2_H_
#define BERTH_BENCH_MODELS_GPT2_H_

#include "bench/models/drawn_model.h"

namespace berth_bench {

class Gpt2 : public DrawnModel {
 public:
  struct Sizes {
    int64_t batch = 16, sequence = 512, layers = 12, width = 768, heads = 12;
    int64_t tokens = 50257, rows = 50304, positions = 1024;
    berth::DType compute = berth::bfloat16;
  };
  Gpt2() : Gpt2(Sizes{}) {}
  explicit Gpt2(const Sizes& sizes) : DrawnModel(sizes.compute), s_(sizes) {
    tokens_ = declare({s_.rows, s_.width}, 0.02);
    positions_ = declare({s_.positions, s_.width}, 0.01);
    for (int64_t i = 0; i < s_.layers; ++i) {
      Layer l;
      l.norm1 = norm();
      l.qkv = dense(s_.width, 3 * s_.width, 0.02);
      l.proj = dense(s_.width, s_.width, branch_deviation());
      l.norm2 = norm();
      l.up = dense(s_.width, 4 * s_.width, 0.02);
      l.down = dense(4 * s_.width, s_.width, branch_deviation());
      layers_.push_back(l);
    }
    norm_ = norm();
  }

  void make(int batches) override {
    adam_ = std::make_unique<Adam>(3e-4, 1e-8, 0.01);
    make_weights(2);
    std::vector<int64_t> first(static_cast<size_t>(s_.sequence));
    for (size_t i = 0; i < first.size(); ++i) first[i] = int64_t(i);
    used_positions_ = berth::identity(berth::constant(first, {s_.sequence}));
    for (int i = 0; i < batches; ++i) {
      inputs_.push_back(whole(input_id(i), {s_.batch, s_.sequence}, s_.tokens));
      labels_.push_back(
          whole(label_id(i), {s_.batch * s_.sequence}, s_.tokens));
    }
  }
  int64_t batch() const override { return s_.batch; }

 private:
  struct Layer {
    size_t norm1, qkv, proj, norm2, up, down;
  };

  // For what is added to the stream 2 * layers times.
  double branch_deviation() const {
    return 0.02 / std::sqrt(2.0 * double(s_.layers));
  }
  size_t norm() {
    const size_t scale = declare({s_.width}, 0, 1);
    declare({s_.width}, 0);
    return scale;
  }
  size_t dense(int64_t in, int64_t out, double deviation) {
    const size_t w = declare({in, out}, deviation);
    declare({out}, 0);
    return w;
  }

  berth::Tensor normed(size_t at, const berth::Tensor& x) const {
    return berth::nn::layer_norm(as("LayerNorm", x), weights_[at],
                                 weights_[at + 1], 1e-5);
  }
  berth::Tensor densed(size_t at, const berth::Tensor& x) const {
    const berth::Tensor y =
        berth::matmul(as("MatMul", x), weight("MatMul", at));
    if (takes("BiasAdd")) {
      return berth::nn::bias_add(y, weight("BiasAdd", at + 1));
    }
    return y + weight("AddV2", at + 1);
  }

  // One op where the catalogue has it, else of products and a softmax.
  berth::Tensor attend(const berth::Tensor& q, const berth::Tensor& k,
                       const berth::Tensor& v) const {
    using namespace berth;
    if (takes("ScaledDotProductAttention") || takes("MaskedSoftmax")) {
      return nn::scaled_dot_product_attention(q, k, v, {.is_causal = true});
    }
    const double scale =
        1 / std::sqrt(static_cast<double>(s_.width / s_.heads));
    const Tensor scores = matmul(q, k, {.transpose_b = true});
    const Tensor shares = nn::masked_softmax(
        as("MaskedSoftmax", scores), {}, {.scale = scale, .is_causal = true});
    return matmul(as("MatMul", shares), v);
  }

  // x: [batch * sequence, width].
  berth::Tensor attention(const Layer& l, const berth::Tensor& x) const {
    using namespace berth;
    const int64_t head = s_.width / s_.heads;
    const Tensor qkv = transpose(
        reshape(densed(l.qkv, x), {s_.batch, s_.sequence, 3, s_.heads, head}),
        {2, 0, 3, 1, 4});
    const Tensors part = unstack(qkv);
    const Tensor mixed = attend(part[0], part[1], part[2]);
    return densed(l.proj, reshape(transpose(mixed, {0, 2, 1, 3}),
                                  {s_.batch * s_.sequence, s_.width}));
  }

  berth::Tensor logits(const berth::Tensor& ids) const override {
    using namespace berth;
    const Tensor positions =
        nn::embedding_lookup(weights_[positions_], used_positions_);
    Tensor h =
        as("AddV2",
           reshape(nn::embedding_lookup(weights_[tokens_], ids) + positions,
                   {s_.batch * s_.sequence, s_.width}));
    for (const Layer& l : layers_) {
      h = h + attention(l, normed(l.norm1, h));
      const Tensor up = as("Gelu", densed(l.up, normed(l.norm2, h)));
      h = h + densed(l.down, nn::gelu(up, {.approximate = true}));
    }
    return to(float32,
              matmul(as("MatMul", normed(norm_, h)), weight("MatMul", tokens_),
                     {.transpose_b = true}));
  }

  void update(const berth::Tensors& grads) const override {
    adam_->apply(weights_, slots_, grads);
  }

  Sizes s_;
  std::vector<Layer> layers_;
  size_t tokens_ = 0, positions_ = 0, norm_ = 0;
  berth::Tensor used_positions_;
  std::unique_ptr<Adam> adam_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_GPT2_H_
