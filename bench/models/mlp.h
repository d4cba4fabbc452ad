// 784-128-10 with relu, batch 64, Adam; float32.

#ifndef BERTH_BENCH_MODELS_MLP_H_
#define BERTH_BENCH_MODELS_MLP_H_

#include "bench/models/drawn_model.h"

namespace berth_bench {

class Mlp : public DrawnModel {
 public:
  struct Sizes {
    int64_t batch = 64, inputs = 784, hidden = 128, classes = 10;
  };
  Mlp() : Mlp(Sizes{}) {}
  explicit Mlp(const Sizes& sizes) : DrawnModel(berth::float32), s_(sizes) {
    declare({s_.inputs, s_.hidden},
            std::sqrt(2.0 / static_cast<double>(s_.inputs)));
    declare({s_.hidden}, 0);
    declare({s_.hidden, s_.classes},
            std::sqrt(2.0 / static_cast<double>(s_.hidden)));
    declare({s_.classes}, 0);
  }

  void make(int batches) override {
    adam_ = std::make_unique<Adam>(1e-3, 1e-7);
    make_weights(2);
    for (int i = 0; i < batches; ++i) {
      inputs_.push_back(numbers(input_id(i), {s_.batch, s_.inputs}, 1));
      labels_.push_back(whole(label_id(i), {s_.batch}, s_.classes));
    }
  }
  int64_t batch() const override { return s_.batch; }

 private:
  berth::Tensor logits(const berth::Tensor& x) const override {
    using namespace berth;
    const Tensor h =
        nn::relu(nn::bias_add(matmul(x, weights_[0]), weights_[1]));
    return nn::bias_add(matmul(h, weights_[2]), weights_[3]);
  }

  void update(const berth::Tensors& grads) const override {
    adam_->apply(weights_, slots_, grads);
  }

  Sizes s_;
  std::unique_ptr<Adam> adam_;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_MLP_H_
