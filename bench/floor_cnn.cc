// Floor of the CNN step: conv 32 3x3 same + relu, maxpool 2, dense 10 on
// 28x28x1, batch 64, Adam, in two forks per step. Each worker takes its images
// one by one through the whole chain and back while they are in its cache.
#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "bench/floor_common.h"

namespace berth_bench {
namespace {

constexpr int kSide = 28;
constexpr int kPixels = kSide * kSide;
constexpr int kChannels = 32;
constexpr int kTaps = 9;
constexpr int kImage = kPixels * kChannels;  // floats after the conv
constexpr int kHalf = kSide / 2;
constexpr int kPooled = kHalf * kHalf * kChannels;  // floats after the pool

using dnnl::memory;
using Tag = memory::format_tag;

// conv + bias + relu of one image by oneDNN, in the weight layout it prefers.
class Conv {
 public:
  Conv() {
    const auto f32 = memory::data_type::f32;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops relu;
    const memory::dims one{1, 1};
    const memory::desc input({1, 1, kSide, kSide}, f32, Tag::nhwc);
    const memory::desc filter({kChannels, 1, 3, 3}, f32, Tag::any);
    const memory::desc bias({kChannels}, f32, Tag::x);
    const memory::desc output({1, kChannels, kSide, kSide}, f32, Tag::nhwc);
    const auto kind = dnnl::prop_kind::forward_training;
    const auto direct = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    relu.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    attr.set_post_ops(relu);
    pd_ = {engine_, kind, direct, input, filter, bias,
           output,  one,  one,    one,   attr};
#else
    relu.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
    attr.set_post_ops(relu);
    pd_ = {{kind, direct, input, filter, bias, output, one, one, one},
           attr,
           engine_};
#endif
    primitive_ = dnnl::convolution_forward(pd_);
  }

  // Floats in the weights' layout, padding included.
  size_t weight_size() const { return pd_.weights_desc().get_size() / 4; }

  // Brings weights [3,3,1,32] into the layout.
  void pack(const float* hwio, float* packed) {
    const memory::desc plain({kChannels, 1, 3, 3}, memory::data_type::f32,
                             Tag::hwio);
    memory from(plain, engine_, const_cast<float*>(hwio));
    memory to(pd_.weights_desc(), engine_, packed);
    dnnl::stream stream(engine_);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  // A worker's own arguments: execute() may then run concurrently.
  class Call {
   public:
    Call(Conv& conv, float* weights, float* bias, float* out)
        : primitive_(conv.primitive_),
          stream_(conv.engine_),
          image_(conv.pd_.src_desc(), conv.engine_, nullptr),
          args_{
              {DNNL_ARG_SRC, image_},
              {DNNL_ARG_WEIGHTS,
               memory(conv.pd_.weights_desc(), conv.engine_, weights)},
              {DNNL_ARG_BIAS, memory(conv.pd_.bias_desc(), conv.engine_, bias)},
              {DNNL_ARG_DST, memory(conv.pd_.dst_desc(), conv.engine_, out)},
              {DNNL_ARG_SCRATCHPAD,
               memory(conv.pd_.scratchpad_desc(), conv.engine_)}} {}
    void execute(const float* image) {
      image_.set_data_handle(const_cast<float*>(image));
      primitive_.execute(stream_, args_);
    }

   private:
    dnnl::convolution_forward primitive_;
    dnnl::stream stream_;
    memory image_;
    std::unordered_map<int, memory> args_;
  };

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::convolution_forward::primitive_desc pd_;
  dnnl::convolution_forward primitive_;
};

// Maxima of 2x2 windows of y [28,28,32]. `which` tells the winner, 4 where
// nothing is above zero, so that the relu's gradient needs no further test.
void max_pool(const float* y, float* pooled, uint8_t* which) {
  constexpr int kRow = kSide * kChannels;
  const int offsets[4] = {0, kChannels, kRow, kRow + kChannels};
  for (int o = 0; o < kPooled; o += 8) {
    const int cell = o / kChannels;
    const float* at = y + (cell / kHalf * 2) * kRow +
                      (cell % kHalf * 2) * kChannels + o % kChannels;
    __m256 largest = _mm256_setzero_ps();
    __m256 winner = _mm256_castsi256_ps(_mm256_set1_epi32(4));
    for (int n = 0; n < 4; ++n) {
      const __m256 v = _mm256_loadu_ps(at + offsets[n]);
      const __m256 above = _mm256_cmp_ps(v, largest, _CMP_GT_OQ);
      largest = _mm256_max_ps(v, largest);
      winner = _mm256_blendv_ps(
          winner, _mm256_castsi256_ps(_mm256_set1_epi32(n)), above);
    }
    _mm256_storeu_ps(pooled + o, largest);
    const __m256i wide = _mm256_castps_si256(winner);
    const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(wide),
                                         _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(which + o),
                     _mm_packus_epi16(half, half));
  }
}

// The way back through pool and relu: writes every element of dy.
void max_pool_grad(const float* dpooled, const uint8_t* which, float* dy) {
  constexpr int kRow = kSide * kChannels;
  const int offsets[4] = {0, kChannels, kRow, kRow + kChannels};
  for (int o = 0; o < kPooled; o += 8) {
    const int cell = o / kChannels;
    float* at = dy + (cell / kHalf * 2) * kRow +
                (cell % kHalf * 2) * kChannels + o % kChannels;
    const __m256 grad = _mm256_loadu_ps(dpooled + o);
    const __m256i winner = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(which + o)));
    for (int n = 0; n < 4; ++n) {
      const __m256i won = _mm256_cmpeq_epi32(winner, _mm256_set1_epi32(n));
      _mm256_storeu_ps(at + offsets[n],
                       _mm256_and_ps(grad, _mm256_castsi256_ps(won)));
    }
  }
}

// Adds one image's share to the gradients of the conv's weights [9,32] and
// biases [32]: with one input channel a direct loop beats oneDNN's kernel.
void conv_weight_grad(const float* image, const float* dy, float* weight,
                      float* bias) {
  constexpr int kStride = 32;  // a row of 28 with a border, padded
  float padded[(kSide + 2) * kStride] = {};
  for (int r = 0; r < kSide; ++r) {
    std::memcpy(padded + (r + 1) * kStride + 1, image + r * kSide,
                kSide * sizeof(float));
  }
  for (int c = 0; c < kChannels; c += 8) {
    __m256 sum[kTaps];
    __m256 total = _mm256_setzero_ps();
    for (__m256& s : sum) s = total;
    for (int pixel = 0, r = 0; r < kSide; ++r) {
      for (int col = 0; col < kSide; ++col, ++pixel) {
        const __m256 g = _mm256_loadu_ps(dy + pixel * kChannels + c);
        const float* at = padded + r * kStride + col;
        total = _mm256_add_ps(total, g);
        for (int t = 0; t < kTaps; ++t) {
          const float* tap = at + t / 3 * kStride + t % 3;
          sum[t] = _mm256_fmadd_ps(g, _mm256_broadcast_ss(tap), sum[t]);
        }
      }
    }
    for (int t = 0; t < kTaps; ++t) {
      float* w = weight + t * kChannels + c;
      _mm256_storeu_ps(w, _mm256_add_ps(_mm256_loadu_ps(w), sum[t]));
    }
    _mm256_storeu_ps(bias + c, _mm256_add_ps(_mm256_loadu_ps(bias + c), total));
  }
}

class Cnn {
 public:
  explicit Cnn(Pool& pool)
      : pool_(pool),
        wc_(conv_.weight_size(), 0.f, 0),
        bc_(kChannels, .1f, 1),
        wd_(kClasses * kPooled, .05f, 60),
        bd_(kLogitStride, .1f, 1),
        pooled_(zeros(kBatch * kPooled)),
        logits_(zeros(kBatch * kLogitStride)) {
    conv_.pack(uniform(kTaps * kChannels, .3f, 50).get(), wc_.value.get());
    find_places();
    for (int w = 0; w < pool_.workers(); ++w) {
      workers_.push_back(std::make_unique<Worker>(*this));
    }
  }

  float step(int batch) {
    const float* x = batches_.images[batch].get();
    const int* labels = batches_.labels[batch];
    const int k = pool_.workers();
    pool_.run([&](int w) {
      Worker& worker = *workers_[w];
      std::memset(worker.grad, 0, sizeof worker.grad);
      const auto [begin, end] = part(kBatch, w, k);
      for (int r = begin; r < end; ++r) {
        image(worker, x + r * kPixels, r, labels[r]);
      }
    });
    pool_.run([&](int w) {
      update_dense(w, k);
      if (w == k - 1) update_conv();
    });
    float sum = 0;
    for (const float loss : losses_) sum += loss;
    return sum / kBatch;
  }

 private:
  struct Worker {
    explicit Worker(Cnn& net)
        : y(zeros(kImage)),
          dpooled(zeros(kPooled)),
          which(static_cast<uint8_t*>(allocate_bytes(kPooled))),
          conv(net.conv_, net.wc_.value.get(), net.bc_.value.get(), y.get()) {}
    Floats y;  // [28,28,32], becomes its gradient
    Floats dpooled;
    Bytes which;
    Conv::Call conv;
    alignas(64) float grad[(kTaps + 1) * kChannels] = {};  // weights, biases
  };

  // Where each weight [9,32] lies in the conv's layout: packs their numbers.
  void find_places() {
    Floats numbers = zeros(kTaps * kChannels);
    Floats packed = zeros(conv_.weight_size());
    for (int i = 0; i < kTaps * kChannels; ++i) numbers[i] = i + 1;
    conv_.pack(numbers.get(), packed.get());
    for (size_t at = 0; at < conv_.weight_size(); ++at) {
      if (packed[at] > 0) places_[static_cast<int>(packed[at]) - 1] = at;
    }
  }

  // Image r forward and back.
  void image(Worker& worker, const float* x, int r, int label) {
    float* pooled = pooled_.get() + r * kPooled;
    float* l = logits_.get() + r * kLogitStride;
    worker.conv.execute(x);
    max_pool(worker.y.get(), pooled, worker.which.get());
    dense_row(pooled, wd_.value.get(), bd_.value.get(), kPooled, l);
    losses_[r] = cross_entropy(l, label);
    for (int i = 0; i < kPooled; i += 8) {
      __m256 sum = _mm256_setzero_ps();
      for (int j = 0; j < kClasses; ++j) {
        const float* w = wd_.value.get() + j * kPooled + i;
        sum = _mm256_fmadd_ps(_mm256_broadcast_ss(l + j), _mm256_loadu_ps(w),
                              sum);
      }
      _mm256_storeu_ps(worker.dpooled.get() + i, sum);
    }
    max_pool_grad(worker.dpooled.get(), worker.which.get(), worker.y.get());
    conv_weight_grad(x, worker.y.get(), worker.grad,
                     worker.grad + kTaps * kChannels);
  }

  // Worker w's columns of the dense weights; the last one takes the biases.
  void update_dense(int w, int k) {
    const auto [begin, end] = part(kPooled / 8, w, k);
    for (int q = begin; q < end; ++q) {
      dense_weight_grad(pooled_.get(), logits_.get(), kPooled, q * 8,
                        wd_.grad.get());
    }
    for (int j = 0; j < kClasses; ++j) {
      wd_.adam(size_t(j) * kPooled + begin * 8, (end - begin) * 8);
    }
    if (w == k - 1) update_dense_bias(logits_.get(), bd_);
  }

  // Adds the workers' partial sums in their order, and updates.
  void update_conv() {
    for (int i = 0; i < (kTaps + 1) * kChannels; ++i) {
      float sum = 0;
      for (const auto& worker : workers_) sum += worker->grad[i];
      const int channel = i - kTaps * kChannels;
      if (channel < 0) {
        wc_.grad[places_[i]] = sum;
      } else {
        bc_.grad[channel] = sum;
      }
    }
    wc_.adam(0, conv_.weight_size());
    bc_.adam(0, kChannels);
  }

  Pool& pool_;
  Conv conv_;
  Batches batches_;
  Parameter wc_, bc_, wd_, bd_;  // wd [10,6272]
  Floats pooled_;                // [64,14,14,32]
  Floats logits_;                // [64,16], becomes dlogits
  size_t places_[kTaps * kChannels] = {};
  std::vector<std::unique_ptr<Worker>> workers_;
  float losses_[kBatch] = {};
};

}  // namespace
}  // namespace berth_bench

__attribute__((target("no-avx"))) int main(int argc, char** argv) {
  using namespace berth_bench;
  if (!cpu_is_able("floor_cnn")) return kSkipStatus;
  return floor_main<Cnn>(argc, argv, "floor_cnn", 2);
}
