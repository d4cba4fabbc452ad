// What the two floor programs share: a pool of pinned workers, aligned
// buffers, the fused Adam update and the softmax cross-entropy of one row.
// Floors say what a training step can cost on this machine when it is written
// by hand from the same kernels; they are measured, never shipped. Compiled
// for AVX2 and FMA: nothing here runs before floor_main() has asked the CPU.
#ifndef BERTH_BENCH_FLOOR_COMMON_H_
#define BERTH_BENCH_FLOOR_COMMON_H_

#include <immintrin.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <sched.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bench_common.h"

namespace berth_bench {

inline constexpr int kBatch = 64;
inline constexpr int kClasses = 10;
inline constexpr int kLogitStride = 16;  // ten logits, padded to a cache line
inline constexpr int kBatches = 16;      // different batches, used in turn
inline constexpr int kLossSteps = 50;

// ---------------------------------------------------------------- memory

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], FreeDeleter>;
using Bytes = std::unique_ptr<uint8_t[], FreeDeleter>;

inline void* allocate_bytes(size_t bytes) {
  void* p = std::aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

// `n` numbers, uniform in [-scale/2, scale/2), the same for a seed on every
// machine.
inline Floats uniform(size_t n, float scale, int seed) {
  Floats p(static_cast<float*>(allocate_bytes(n * sizeof(float))));
  for (size_t i = 0; i < n; ++i) {
    const size_t hash = ((i + size_t(seed) * 7919) * 2654435761u) >> 8;
    p[i] = (static_cast<float>(hash % 1000) / 1000.f - 0.5f) * scale;
  }
  return p;
}

inline Floats zeros(size_t n) { return uniform(n, 0.f, 0); }

// ---------------------------------------------------------------- threads

// Part `i` of `parts` nearly equal parts of [0, n).
inline std::pair<int, int> part(int n, int i, int parts) {
  return {n * i / parts, n * (i + 1) / parts};
}

inline void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
  omp_set_num_threads(1);  // oneDNN must not open a team inside a worker
}

// Workers pinned to one core each; the calling thread is worker 0. run() cuts
// a job into chunks: worker w takes chunk w, whose data its cache holds, then
// steals what nobody has begun. Waiting spins for 500 us, then sleeps.
class Pool {
 public:
  explicit Pool(const std::vector<int>& cores) {
    pin_to(cores[0]);
    for (size_t w = 1; w < cores.size(); ++w) {
      threads_.emplace_back([this, w, core = cores[w]] {
        pin_to(core);
        work(static_cast<int>(w));
      });
    }
  }
  ~Pool() {
    stop_ = true;
    epoch_.fetch_add(1);
    epoch_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls job(i) for i in [0, workers()), and returns when all are done.
  template <class Job>
  void run(Job&& job) {
    if (threads_.empty()) return job(0);
    call_ = [](void* p, int i) { (*static_cast<Job*>(p))(i); };
    job_ = &job;
    chunks_ = workers();
    done_.store(0, std::memory_order_relaxed);
    const uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
    const uint64_t all = (uint64_t{1} << chunks_) - 1;
    claims_.store(uint64_t{epoch} << 32 | all, std::memory_order_release);
    epoch_.store(epoch);
    epoch_.notify_all();
    while (take_chunk(0)) {
    }
    wait_while(done_, [this](int done) { return done != chunks_; });
  }

 private:
  // The epoch in the upper half of claims_ keeps a late worker from claiming
  // a chunk of the next job with the mask of the last one.
  bool take_chunk(int worker) {
    uint64_t claims = claims_.load(std::memory_order_acquire);
    for (;;) {
      const auto mask = static_cast<uint32_t>(claims);
      if (mask == 0) return false;
      const int chunk = mask >> worker & 1 ? worker : __builtin_ctz(mask);
      if (claims_.compare_exchange_weak(claims,
                                        claims & ~(uint64_t{1} << chunk),
                                        std::memory_order_acq_rel)) {
        const int chunks = chunks_;
        call_(job_, chunk);
        if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks) {
          done_.notify_one();
        }
        return true;
      }
    }
  }

  void work(int worker) {
    for (;;) {
      const uint32_t seen = epoch_.load();
      if (stop_) return;
      if (take_chunk(worker)) continue;
      wait_while(epoch_, [seen](uint32_t epoch) { return epoch == seen; });
    }
  }

  // Spins while `busy(value)`, for at most 500 us, then sleeps on the value.
  template <class T, class Busy>
  static void wait_while(const std::atomic<T>& value, Busy busy) {
    double begin = 0;
    for (int turn = 1;; ++turn) {
      const T now = value.load(std::memory_order_acquire);
      if (!busy(now)) return;
      _mm_pause();
      if (turn % 64 != 0) continue;
      const double time = now_seconds();
      if (begin == 0) begin = time;
      if (time - begin > 500e-6) value.wait(now);
    }
  }

  alignas(64) std::atomic<uint64_t> claims_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) void (*call_)(void*, int) = nullptr;
  void* job_ = nullptr;
  int chunks_ = 0;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// ---------------------------------------------------------------- kernels

// c[kRows, 16] = op(a) b over k: element (i, p) of op(a) at a[i * row + p *
// col].
template <int kRows>
inline void product_tile(int k, const float* a, int row, int col,
                         const float* b, int ldb, float* c, int ldc) {
  __m256 sum[kRows][2];
  for (auto& s : sum) s[0] = s[1] = _mm256_setzero_ps();
  for (int p = 0; p < k; ++p) {
    const __m256 b0 = _mm256_loadu_ps(b + p * ldb);
    const __m256 b1 = _mm256_loadu_ps(b + p * ldb + 8);
    for (int i = 0; i < kRows; ++i) {
      const __m256 left = _mm256_broadcast_ss(a + i * row + p * col);
      sum[i][0] = _mm256_fmadd_ps(left, b0, sum[i][0]);
      sum[i][1] = _mm256_fmadd_ps(left, b1, sum[i][1]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    _mm256_storeu_ps(c + i * ldc, sum[i][0]);
    _mm256_storeu_ps(c + i * ldc + 8, sum[i][1]);
  }
}

// c[m, n] = op(a) b for an even m and n a multiple of 16, b in cache.
inline void product(int m, int n, int k, const float* a, int row, int col,
                    const float* b, int ldb, float* c, int ldc) {
  for (int j = 0; j < n; j += 16) {
    int i = 0;
    for (; i + 6 <= m; i += 6) {
      product_tile<6>(k, a + i * row, row, col, b + j, ldb, c + i * ldc + j,
                      ldc);
    }
    for (; i < m; i += 2) {
      product_tile<2>(k, a + i * row, row, col, b + j, ldb, c + i * ldc + j,
                      ldc);
    }
  }
}

// C[m,n] = op(A) op(B), row-major, on the calling thread.
inline void sgemm(bool transpose_a, int m, int n, int k, const float* a,
                  int lda, const float* b, int ldb, float* c, int ldc) {
  dnnl_sgemm(transpose_a ? 'T' : 'N', 'N', m, n, k, 1.f, a, lda, b, ldb, 0.f, c,
             ldc);
}

inline float sum8(__m256 a) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  x = _mm_add_ss(x, _mm_shuffle_ps(x, x, 1));
  return _mm_cvtss_f32(x);
}

// A parameter with its gradient and Adam's two moments.
struct Parameter {
  Parameter(size_t n, float scale, int seed)
      : value(uniform(n, scale, seed)),
        grad(zeros(n)),
        m(zeros(n)),
        v(zeros(n)) {}
  Floats value, grad, m, v;

  // Adam with a learning rate of 1e-3 on [begin, begin + n). The bias
  // corrections are left at 1: they cost two scalars per step.
  void adam(size_t begin, size_t n) {
    float* __restrict w = value.get() + begin;
    const float* __restrict g = grad.get() + begin;
    float* __restrict m1 = m.get() + begin;
    float* __restrict v1 = v.get() + begin;
    for (size_t i = 0; i < n; ++i) {
      const float mean = 0.9f * m1[i] + (1 - 0.9f) * g[i];
      const float square = 0.999f * v1[i] + (1 - 0.999f) * g[i] * g[i];
      m1[i] = mean;
      v1[i] = square;
      w[i] -= 1e-3f * mean / (__builtin_sqrtf(square) + 1e-8f);
    }
  }
};

// Softmax cross-entropy of one row: returns the loss and replaces the logits
// by the gradient of the batch's mean loss.
inline float cross_entropy(float* logits, int label) {
  float largest = logits[0];
  for (int j = 1; j < kClasses; ++j) largest = std::max(largest, logits[j]);
  float e[kClasses];
  float sum = 0;
  for (int j = 0; j < kClasses; ++j) {
    e[j] = std::exp(logits[j] - largest);
    sum += e[j];
  }
  const float loss = std::log(sum) + largest - logits[label];
  const float scale = 1 / (sum * kBatch);
  for (int j = 0; j < kClasses; ++j) logits[j] = e[j] * scale;
  logits[label] -= 1.f / kBatch;
  return loss;
}

// out[10] = x[n] * w[10, n]^T + bias[10]; n is a multiple of 16. Two sums per
// class hide the latency of the FMA.
inline void dense_row(const float* x, const float* w, const float* bias, int n,
                      float* out) {
  for (int first = 0; first < kClasses; first += 5) {
    __m256 even[5];
    __m256 odd[5];
    for (int j = 0; j < 5; ++j) even[j] = odd[j] = _mm256_setzero_ps();
    for (int i = 0; i < n; i += 16) {
      const __m256 x0 = _mm256_loadu_ps(x + i);
      const __m256 x1 = _mm256_loadu_ps(x + i + 8);
      for (int j = 0; j < 5; ++j) {
        const float* row = w + (first + j) * n + i;
        even[j] = _mm256_fmadd_ps(x0, _mm256_loadu_ps(row), even[j]);
        odd[j] = _mm256_fmadd_ps(x1, _mm256_loadu_ps(row + 8), odd[j]);
      }
    }
    for (int j = 0; j < 5; ++j) {
      out[first + j] = sum8(_mm256_add_ps(even[j], odd[j])) + bias[first + j];
    }
  }
}

// Eight columns from `i` of the dense layer's weight gradient: grad[10, n] =
// dlogits[64, 10]^T * x[64, n].
inline void dense_weight_grad(const float* x, const float* dlogits, int n,
                              int i, float* grad) {
  __m256 sum[kClasses];
  for (__m256& s : sum) s = _mm256_setzero_ps();
  for (int r = 0; r < kBatch; ++r) {
    const __m256 row = _mm256_loadu_ps(x + r * n + i);
    for (int j = 0; j < kClasses; ++j) {
      sum[j] = _mm256_fmadd_ps(
          row, _mm256_broadcast_ss(dlogits + r * kLogitStride + j), sum[j]);
    }
  }
  for (int j = 0; j < kClasses; ++j) _mm256_storeu_ps(grad + j * n + i, sum[j]);
}

// Adds up dlogits over the batch and updates the ten biases.
inline void update_dense_bias(const float* dlogits, Parameter& bias) {
  float sum[kClasses] = {};
  for (int r = 0; r < kBatch; ++r) {
    for (int j = 0; j < kClasses; ++j) sum[j] += dlogits[r * kLogitStride + j];
  }
  std::copy(sum, sum + kClasses, bias.grad.get());
  bias.adam(0, kClasses);
}

// ---------------------------------------------------------------- program

// Batches of 64 images of 784 pixels in [-1, 1) with labels 0 to 9.
struct Batches {
  Batches() {
    for (int b = 0; b < kBatches; ++b) {
      images[b] = uniform(kBatch * 784, 2.f, b + 1);
      for (int r = 0; r < kBatch; ++r) labels[b][r] = (b * 31 + r * 7) % 10;
    }
  }
  Floats images[kBatches];
  int labels[kBatches][kBatch];
};

// Runs 50 steps for the loss, times the step, prints the line. Net has
// Net(Pool&) and float step(int batch), which returns the mean loss.
template <class Net>
int run_floor(const std::string& bench, const Args& args, int calls) {
  std::vector<int> cores = allowed_cores();
  if (args.cores > 31) return skip(bench, args.cores, "at most 31 cores");
  if (static_cast<int>(cores.size()) < args.cores) {
    return skip(bench, args.cores,
                "only " + std::to_string(cores.size()) + " cores are allowed");
  }
  cores.resize(args.cores);
  Pool pool(cores);
  Net net(pool);
  float loss = 0;
  for (int i = 0; i < kLossSteps; ++i) loss = net.step(i % kBatches);
  int next = 0;
  const Timing timing =
      measure_blocks([&] { net.step(next++ % kBatches); }, args.seconds, calls);
  Line(bench, args.cores).timing(timing, "us", 1e6).add("loss50", loss).print();
  return 0;
}

// The body of main(). It must not be inlined there: main() is compiled for
// the baseline CPU, so that the check runs anywhere.
template <class Net>
__attribute__((noinline)) int floor_main(int argc, char** argv,
                                         const char* bench, int calls) {
  return run_floor<Net>(bench, parse_args(argc, argv), calls);
}

// True if the CPU runs this file; otherwise says so on standard output.
__attribute__((noinline, target("no-avx"))) inline bool cpu_is_able(
    const char* bench) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return true;
  }
  std::printf("{\"bench\":\"%s\",\"skipped\":\"the CPU has no AVX2\"}\n",
              bench);
  return false;
}

}  // namespace berth_bench

#endif  // BERTH_BENCH_FLOOR_COMMON_H_
