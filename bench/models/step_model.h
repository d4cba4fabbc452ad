// What the models that the benches time share: weights, slots of their
// optimizer, batches drawn in memory, and the training step as a callable.
// Not thread-safe.

#ifndef BERTH_BENCH_MODELS_STEP_MODEL_H_
#define BERTH_BENCH_MODELS_STEP_MODEL_H_

#include <vector>

#include "berth/berth.h"
#include "ops/training.h"

namespace berth_bench {

class StepModel {
 public:
  virtual ~StepModel() = default;

  // One training step: forward, backward, update. Returns the loss.
  berth::Tensor operator()(const berth::Tensor& x,
                           const berth::Tensor& y) const {
    using namespace berth;
    GradientTape tape;
    const Tensor loss = math::reduce_mean(
        nn::sparse_softmax_cross_entropy_with_logits(y, logits(x)));
    update(tape.gradient(loss, weights_));
    return loss;
  }

  // The gradients of the part of a batch of `total` that x and y are: those of
  // all parts add up to those of the batch.
  berth::Tensors gradients(const berth::Tensor& x, const berth::Tensor& y,
                           int64_t total) const {
    using namespace berth;
    GradientTape tape;
    const Tensor loss =
        math::reduce_sum(
            nn::sparse_softmax_cross_entropy_with_logits(y, logits(x))) /
        static_cast<float>(total);
    return tape.gradient(loss, weights_);
  }
  void apply(const berth::Tensors& grads) const { update(grads); }

  // Batches come round again.
  const berth::Tensor& images(int i) const {
    return inputs_[static_cast<size_t>(i) % inputs_.size()];
  }
  const berth::Tensor& labels(int i) const {
    return labels_[static_cast<size_t>(i) % labels_.size()];
  }
  int64_t parameters() const {
    int64_t n = 0;
    for (const berth::Variable& w : weights_) n += w.shape().num_elements();
    return n;
  }

 protected:
  static constexpr int kBatches = 16;

  virtual berth::Tensor logits(const berth::Tensor& x) const = 0;
  virtual void update(const berth::Tensors& grads) const = 0;

  // Adds a weight with `slots` zeroed slots: normal numbers of this deviation,
  // or the constant `fill` when it is 0. Returns its number.
  size_t add(const berth::Shape& shape, double deviation, int slots,
             double fill = 0) {
    using namespace berth;
    random::set_seed(static_cast<int64_t>(weights_.size()) + 50);
    weights_.emplace_back(deviation > 0
                              ? random::normal(shape, {.stddev = deviation})
                              : berth::fill(shape, fill));
    slots_.resize(static_cast<size_t>(slots));
    for (auto& slot : slots_) slot.push_back(state(shape, 0));
    return weights_.size() - 1;
  }

  static berth::Variable state(const berth::Shape& shape, double fill) {
    return berth::Variable(berth::fill(shape, fill), {.trainable = false});
  }

  // `count` labels below `classes` per batch.
  void add_labels(int64_t count, int64_t classes) {
    for (int64_t i = 0; i < kBatches; ++i) {
      std::vector<int64_t> labels;
      for (int64_t j = 0; j < count; ++j) {
        labels.push_back((i * 31 + j * 7) % classes);
      }
      labels_.push_back(berth::constant(labels, {count}));
    }
  }

  std::vector<berth::Variable> weights_;
  std::vector<std::vector<berth::Variable>> slots_;  // [slot][weight]
  std::vector<berth::Tensor> inputs_, labels_;
};

// Adam's bias corrections and update; `decay` times the rate is taken off the
// weights before (AdamW).
class Adam {
 public:
  explicit Adam(double rate, double epsilon, double decay = 0)
      : rate_(rate), epsilon_(epsilon), decay_(decay) {
    using namespace berth;
    power1_ = Variable(constant(0.9f), {.trainable = false});
    power2_ = Variable(constant(0.999f), {.trainable = false});
  }

  void apply(const std::vector<berth::Variable>& weights,
             const std::vector<std::vector<berth::Variable>>& slots,
             const berth::Tensors& grads) const {
    using namespace berth;
    const training::AdamScalars scalars{power1_,          power2_,
                                        number(rate_),    constant(0.9f),
                                        constant(0.999f), number(epsilon_)};
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor &var = weights[i].handle(), &m = slots[0][i].handle(),
                   &v = slots[1][i].handle();
      if (decay_ > 0) {
        training::apply_adam_with_weight_decay(var, m, v, scalars,
                                               number(decay_), grads[i], false);
      } else {
        training::apply_adam(var, m, v, scalars, grads[i], false);
      }
    }
    power1_.assign(power1_ * 0.9);
    power2_.assign(power2_ * 0.999);
  }

 private:
  static berth::Tensor number(double x) {
    return berth::constant(static_cast<float>(x));
  }

  double rate_, epsilon_, decay_;
  berth::Variable power1_, power2_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_STEP_MODEL_H_
