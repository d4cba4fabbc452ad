// The peer's bench_resnet18: ResNet-18 with a 3x3 stem for 32x32x3 images,
// batch 32, SGD with momentum 0.9 and weight decay 5e-4 on every weight.
//
// Batch norm trains and moves its running statistics by 0.1 per step, as the
// peer's does. A stride of 2 pads one row after (TensorFlow's "SAME") where
// the peer pads on both sides: same shapes, same work.

#ifndef BERTH_BENCH_MODELS_RESNET18_H_
#define BERTH_BENCH_MODELS_RESNET18_H_

#include <cmath>

#include "bench/models/step_model.h"

namespace berth_bench {

class ResNet18 : public StepModel {
 public:
  ResNet18() {
    using namespace berth;
    stem_ = unit(3, 64, 3, 1);
    int64_t in = 64;
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t out = int64_t{64} << stage;
      for (int i = 0; i < 2; ++i) {
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        Block b;
        b.first = unit(in, out, 3, stride);
        b.second = unit(out, out, 3, 1);
        b.project = stride != 1;
        if (b.project) b.shortcut = unit(in, out, 1, stride);
        blocks_.push_back(b);
        in = out;
      }
    }
    dense_ = add({512, 10}, std::sqrt(1.0 / 512), 1);
    add({10}, 0, 1);
    for (int i = 0; i < kBatches; ++i) {
      random::set_seed(i);
      inputs_.push_back(random::uniform({32, 32, 32, 3}));
    }
    add_labels(32, 10);
  }

 private:
  // A convolution without bias and the batch norm after it.
  struct Unit {
    size_t filter = 0, scale = 0;
    int64_t stride = 1;
    berth::Variable mean, variance;
  };
  struct Block {
    Unit first, second, shortcut;
    bool project = false;
  };

  Unit unit(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    Unit u;
    u.filter =
        add({kernel, kernel, in, out},
            std::sqrt(2.0 / static_cast<double>(kernel * kernel * in)), 1);
    u.scale = add({out}, 0, 1, 1);
    add({out}, 0, 1);
    u.stride = stride;
    u.mean = state({out}, 0);
    u.variance = state({out}, 1);
    return u;
  }

  berth::Tensor run(const Unit& u, const berth::Tensor& x) const {
    using namespace berth;
    const Tensor h = nn::conv2d(x, weights_[u.filter],
                                {.strides = {u.stride}, .padding = "SAME"});
    const nn::FusedBatchNorm norm = nn::fused_batch_norm(
        h, weights_[u.scale], weights_[u.scale + 1], {.epsilon = 1e-5});
    u.mean.assign(u.mean * 0.9 + norm.batch_mean * 0.1);
    u.variance.assign(u.variance * 0.9 + norm.batch_variance * 0.1);
    return norm.y;
  }

  berth::Tensor logits(const berth::Tensor& x) const override {
    using namespace berth;
    Tensor h = nn::relu(run(stem_, x));
    for (const Block& b : blocks_) {
      const Tensor main = run(b.second, nn::relu(run(b.first, h)));
      h = nn::relu(main + (b.project ? run(b.shortcut, h) : h));
    }
    h = math::reduce_mean(h, {.axis = std::vector<int64_t>{1, 2}});
    return nn::bias_add(matmul(h, weights_[dense_]), weights_[dense_ + 1]);
  }

  void update(const berth::Tensors& grads) const override {
    using namespace berth;
    const Tensor rate = constant(0.1f), momentum = constant(0.9f);
    for (size_t i = 0; i < weights_.size(); ++i) {
      training::apply_momentum(weights_[i].handle(), slots_[0][i].handle(),
                               rate, grads[i] + weights_[i] * 5e-4, momentum,
                               false);
    }
  }

  Unit stem_;
  std::vector<Block> blocks_;
  size_t dense_ = 0;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_RESNET18_H_
