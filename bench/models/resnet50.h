// ResNet-50 (He et al. 2015; the stride is that of the 3x3 convolution, as most
// have it now): 25,557,032 parameters. Images [n, h, w, 3] of float32, channels
// last; SGD with momentum 0.9 and weight decay 5e-4 on every weight.
//
// Batch norm trains and moves its running statistics by 0.1 per step.
// Convolutions pad both sides alike, as the peer's do; the pool pads as
// TensorFlow's "SAME", which is the same work, and the same windows where the
// image's side is odd after the first convolution.

#ifndef BERTH_BENCH_MODELS_RESNET50_H_
#define BERTH_BENCH_MODELS_RESNET50_H_

#include <array>

#include "bench/models/drawn_model.h"

namespace berth_bench {

class ResNet50 : public DrawnModel {
 public:
  struct Sizes {
    int64_t batch = 128, image = 224, width = 64, classes = 1000;
    float rate = 0.1f;
    berth::DType compute = berth::bfloat16;
  };
  ResNet50() : ResNet50(Sizes{}) {}
  explicit ResNet50(const Sizes& sizes) : DrawnModel(sizes.compute), s_(sizes) {
    stem_ = unit(3, s_.width, 7, 2);
    int64_t in = s_.width;
    for (size_t stage = 0; stage < kBlocks.size(); ++stage) {
      const int64_t mid = s_.width << stage, out = 4 * mid;
      for (int i = 0; i < kBlocks[stage]; ++i) {
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        Block b;
        b.reduce = unit(in, mid, 1, 1);
        b.middle = unit(mid, mid, 3, stride);
        b.expand = unit(mid, out, 1, 1);
        b.project = i == 0;
        if (b.project) b.shortcut = unit(in, out, 1, stride);
        blocks_.push_back(b);
        in = out;
      }
    }
    dense_ = declare({in, s_.classes}, std::sqrt(1.0 / double(in)));
    declare({s_.classes}, 0);
  }

  void make(int batches) override {
    make_weights(1);
    make_statistics(stem_);
    for (Block& b : blocks_) {
      for (Unit* u : {&b.reduce, &b.middle, &b.expand}) make_statistics(*u);
      if (b.project) make_statistics(b.shortcut);
    }
    for (int i = 0; i < batches; ++i) {
      inputs_.push_back(
          numbers(input_id(i), {s_.batch, s_.image, s_.image, 3}, 1));
      labels_.push_back(whole(label_id(i), {s_.batch}, s_.classes));
    }
  }
  int64_t batch() const override { return s_.batch; }

 private:
  static constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};

  // A convolution without bias and the batch norm after it.
  struct Unit {
    size_t filter = 0, scale = 0;  // the offset follows the scale
    int64_t channels = 0, kernel = 1, stride = 1;
    berth::Variable mean, variance;
  };
  struct Block {
    Unit reduce, middle, expand, shortcut;
    bool project = false;
  };

  Unit unit(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    Unit u;
    u.filter = declare({kernel, kernel, in, out},
                       std::sqrt(2.0 / double(kernel * kernel * in)));
    u.scale = declare({out}, 0, 1);
    declare({out}, 0);
    u.channels = out;
    u.kernel = kernel;
    u.stride = stride;
    return u;
  }

  static void make_statistics(Unit& u) {
    u.mean = state({u.channels}, 0);
    u.variance = state({u.channels}, 1);
  }

  berth::Tensor run(const Unit& u, const berth::Tensor& x) const {
    using namespace berth;
    const int64_t pad = u.kernel / 2;
    nn::Conv2DOptions options{.strides = {u.stride}};
    if (pad > 0) {
      options.padding = "EXPLICIT";
      options.explicit_paddings = {pad, pad, pad, pad};
    }
    const Tensor h =
        nn::conv2d(as("Conv2D", x), weight("Conv2D", u.filter), options);
    const nn::FusedBatchNorm norm =
        nn::fused_batch_norm(as("FusedBatchNormV3", h), weights_[u.scale],
                             weights_[u.scale + 1], {.epsilon = 1e-5});
    u.mean.assign(u.mean * 0.9 + norm.batch_mean * 0.1);
    u.variance.assign(u.variance * 0.9 + norm.batch_variance * 0.1);
    return norm.y;
  }

  berth::Tensor relu(const berth::Tensor& x) const {
    return berth::nn::relu(as("Relu", x));
  }

  berth::Tensor logits(const berth::Tensor& x) const override {
    using namespace berth;
    Tensor h = relu(run(stem_, x));
    h = nn::max_pool2d(as("MaxPool", h),
                       {.ksize = {3}, .strides = {2}, .padding = "SAME"});
    for (const Block& b : blocks_) {
      const Tensor main =
          run(b.expand, relu(run(b.middle, relu(run(b.reduce, h)))));
      const Tensor side = b.project ? run(b.shortcut, h) : h;
      h = relu(main + to(main.dtype(), side));
    }
    h = math::reduce_mean(h, {.axis = std::vector<int64_t>{1, 2}});
    return to(float32, matmul(as("MatMul", h), weight("MatMul", dense_)) +
                           weight("MatMul", dense_ + 1));
  }

  void update(const berth::Tensors& grads) const override {
    using namespace berth;
    const Tensor rate = constant(s_.rate), momentum = constant(0.9f);
    for (size_t i = 0; i < weights_.size(); ++i) {
      training::apply_momentum(weights_[i].handle(), slots_[0][i].handle(),
                               rate, grads[i] + weights_[i] * 5e-4, momentum,
                               false);
    }
  }

  Sizes s_;
  Unit stem_;
  std::vector<Block> blocks_;
  size_t dense_ = 0;
};

}  // namespace berth_bench

#endif  // BERTH_BENCH_MODELS_RESNET50_H_
