// The peer's bench_mlp (784-128-10) and bench_cnn (one 3x3 convolution of 32
// filters, maximum over 2x2, dense): batch 64, Adam.

#ifndef BERTH_BENCH_MODELS_SMALL_H_
#define BERTH_BENCH_MODELS_SMALL_H_

#include "bench/models/step_model.h"

namespace berth_bench {

class SmallModel : public StepModel {
 public:
  explicit SmallModel(bool cnn, int64_t batch = 64, double rate = 1e-3)
      : cnn_(cnn), adam_(rate, 1e-7) {
    using namespace berth;
    if (cnn_) {
      add({3, 3, 1, 32}, 0.3, 2);
      add({32}, 0, 2);
      add({14 * 14 * 32, 10}, 0.05, 2);
    } else {
      add({784, 128}, 0.1, 2);
      add({128}, 0, 2);
      add({128, 10}, 0.2, 2);
    }
    add({10}, 0, 2);
    for (int i = 0; i < kBatches; ++i) {
      random::set_seed(i);
      inputs_.push_back(
          random::uniform(cnn_ ? Shape{batch, 28, 28, 1} : Shape{batch, 784}));
    }
    add_labels(batch, 10);
  }

 private:
  berth::Tensor logits(const berth::Tensor& x) const override {
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

  void update(const berth::Tensors& grads) const override {
    adam_.apply(weights_, slots_, grads);
  }

  bool cnn_;
  Adam adam_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_SMALL_H_
