// The peer's bench_gpt: decoder of 4 layers, width 256, 8 heads, sequence 128,
// batch 8, vocabulary 4096, head not tied, no dropout, AdamW.

#ifndef BERTH_BENCH_MODELS_GPT_H_
#define BERTH_BENCH_MODELS_GPT_H_

#include "bench/models/step_model.h"

namespace berth_bench {

class Gpt : public StepModel {
 public:
  Gpt() : adam_(3e-4, 1e-8, 0.01) {
    using namespace berth;
    tokens_ = add({kVocab, kDim}, 0.02, 2);
    positions_ = add({kSeq, kDim}, 0.02, 2);
    for (int i = 0; i < kLayers; ++i) {
      Layer l;
      l.norm1 = norm();
      l.qkv = dense(kDim, 3 * kDim);
      l.proj = dense(kDim, kDim);
      l.norm2 = norm();
      l.up = dense(kDim, 4 * kDim);
      l.down = dense(4 * kDim, kDim);
      layers_.push_back(l);
    }
    norm_ = norm();
    head_ = add({kDim, kVocab}, 0.02, 2);
    for (int64_t i = 0; i < kBatches; ++i) {
      std::vector<int64_t> ids;
      for (int64_t j = 0; j < kBatch * kSeq; ++j) {
        ids.push_back((i * 977 + j * j * 13 + j) % kVocab);
      }
      inputs_.push_back(constant(ids, {kBatch, kSeq}));
    }
    add_labels(kBatch * kSeq, kVocab);
  }

 private:
  static constexpr int kLayers = 4;
  static constexpr int64_t kDim = 256, kHeads = 8, kSeq = 128, kBatch = 8,
                           kVocab = 4096, kHead = kDim / kHeads;
  struct Layer {
    size_t norm1, qkv, proj, norm2, up, down;
  };

  size_t norm() {
    const size_t scale = add({kDim}, 0, 2, 1);
    add({kDim}, 0, 2);
    return scale;
  }
  size_t dense(int64_t in, int64_t out) {
    const size_t w = add({in, out}, 0.02, 2);
    add({out}, 0, 2);
    return w;
  }

  berth::Tensor normed(size_t at, const berth::Tensor& x) const {
    return berth::nn::layer_norm(x, weights_[at], weights_[at + 1], 1e-5);
  }
  berth::Tensor densed(size_t at, const berth::Tensor& x) const {
    return berth::nn::bias_add(berth::matmul(x, weights_[at]),
                               weights_[at + 1]);
  }

  // x: [batch * seq, dim].
  berth::Tensor attention(const Layer& l, const berth::Tensor& x) const {
    using namespace berth;
    const Tensor qkv =
        transpose(reshape(densed(l.qkv, x), {kBatch, kSeq, 3, kHeads, kHead}),
                  {2, 0, 3, 1, 4});
    const Tensors part = unstack(qkv);
    const Tensor mixed = nn::scaled_dot_product_attention(
        part[0], part[1], part[2], {.is_causal = true});
    return densed(
        l.proj, reshape(transpose(mixed, {0, 2, 1, 3}), {kBatch * kSeq, kDim}));
  }

  berth::Tensor logits(const berth::Tensor& ids) const override {
    using namespace berth;
    Tensor h = reshape(
        nn::embedding_lookup(weights_[tokens_], ids) + weights_[positions_],
        {kBatch * kSeq, kDim});
    for (const Layer& l : layers_) {
      h = h + attention(l, normed(l.norm1, h));
      h = h + densed(l.down, nn::gelu(densed(l.up, normed(l.norm2, h))));
    }
    return matmul(normed(norm_, h), weights_[head_]);
  }

  void update(const berth::Tensors& grads) const override {
    adam_.apply(weights_, slots_, grads);
  }

  std::vector<Layer> layers_;
  size_t tokens_ = 0, positions_ = 0, norm_ = 0, head_ = 0;
  Adam adam_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_GPT_H_
