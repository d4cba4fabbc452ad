// The two training steps that the benches time, on public ops: the peer's
// bench_mlp (784-128-10) and bench_cnn (one 3x3 convolution), batch 64, Adam.

#ifndef BERTH_BENCH_STEP_MODELS_H_
#define BERTH_BENCH_STEP_MODELS_H_

#include <memory>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "ops/training.h"

namespace berth_bench {

inline constexpr int64_t kBatch = 64;

// Variables, Adam's slots, and the step as one function.
class StepModel {
 public:
  explicit StepModel(const std::string& model) : cnn_(model == "cnn") {
    using berth::Shape;
    if (cnn_) {
      add({3, 3, 1, 32}, 0.3f);
      add({32}, 0);
      add({14 * 14 * 32, 10}, 0.05f);
    } else {
      add({784, 128}, 0.1f);
      add({128}, 0);
      add({128, 10}, 0.2f);
    }
    add({10}, 0);
    power1_ = berth::Variable(berth::constant(0.9f), {.trainable = false});
    power2_ = berth::Variable(berth::constant(0.999f), {.trainable = false});
    for (int i = 0; i < 16; ++i) {
      berth::random::set_seed(i);
      images_.push_back(berth::random::uniform(cnn_ ? Shape{kBatch, 28, 28, 1}
                                                    : Shape{kBatch, 784}));
      std::vector<int64_t> labels;
      for (int j = 0; j < kBatch; ++j) labels.push_back((i * 31 + j * 7) % 10);
      labels_.push_back(berth::constant(labels, {kBatch}));
    }
  }

  berth::Tensor operator()(const berth::Tensor& x,
                           const berth::Tensor& y) const {
    using namespace berth;
    GradientTape tape;
    const Tensor loss = math::reduce_mean(
        nn::sparse_softmax_cross_entropy_with_logits(y, logits(x)));
    const Tensors grads = tape.gradient(loss, weights_);
    const training::AdamScalars scalars{power1_,          power2_,
                                        constant(1e-3f),  constant(0.9f),
                                        constant(0.999f), constant(1e-7f)};
    for (size_t i = 0; i < weights_.size(); ++i) {
      training::apply_adam(weights_[i].handle(), m_[i].handle(), v_[i].handle(),
                           scalars, grads[i], false);
    }
    power1_.assign(power1_ * 0.9);
    power2_.assign(power2_ * 0.999);
    return loss;
  }

  const berth::Tensor& images(int i) const { return images_[i % 16]; }
  const berth::Tensor& labels(int i) const { return labels_[i % 16]; }

 private:
  void add(berth::Shape shape, float scale) {
    berth::random::set_seed(static_cast<int64_t>(weights_.size()) + 50);
    weights_.emplace_back(
        berth::random::normal(shape, {.stddev = scale > 0 ? scale : 1.0}) *
        (scale > 0 ? 1.0 : 0.0));
    for (auto* slot : {&m_, &v_}) {
      slot->emplace_back(berth::zeros(shape),
                         berth::VariableOptions{.trainable = false});
    }
  }

  berth::Tensor logits(const berth::Tensor& x) const {
    using namespace berth;
    Tensor h;
    if (cnn_) {
      h = nn::conv2d(x, weights_[0], {.padding = "SAME"});
      h = nn::relu(nn::bias_add(h, weights_[1]));
      h = nn::max_pool2d(h, {.ksize = {2, 2}, .strides = {2, 2}});
      h = reshape(h, {-1, 14 * 14 * 32});
    } else {
      h = nn::relu(nn::bias_add(matmul(x, weights_[0]), weights_[1]));
    }
    return nn::bias_add(matmul(h, weights_[2]), weights_[3]);
  }

  bool cnn_;
  std::vector<berth::Variable> weights_, m_, v_;
  berth::Variable power1_, power2_;
  std::vector<berth::Tensor> images_, labels_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_STEP_MODELS_H_
