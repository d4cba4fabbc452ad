// Matrix products and convolutions of oneDNN on raw float pointers.
//
// The only access to oneDNN: no other file includes its headers. Every call
// runs single-threaded on the calling thread; parallelism comes from slices
// over a ThreadPool. Thread-safe: plans are immutable once made and re-entrant
// as long as concurrent runs use different scratch.

#ifndef BERTH_BACKENDS_CPU_DNNL_MATH_H_
#define BERTH_BACKENDS_CPU_DNNL_MATH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace berth {
class ThreadPool;
}

namespace berth::cpu {

// Tells OpenMP, and so oneDNN, to stay on the calling thread. Every call here
// does so anyway; engine threads call this once to save the repetition.
void use_one_openmp_thread();

// c[m, n] = alpha * op(a) * op(b) + beta * c, row-major, where op(a) is
// [m, k] and op(b) is [k, n]; lda, ldb, ldc are row strides in floats as
// stored. With beta = 0, c need not be initialised. Serial. Throws Internal
// when oneDNN refuses.
void sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
           float alpha, const float* a, int64_t lda, const float* b,
           int64_t ldb, float beta, float* c, int64_t ldc);

// A 2-D convolution in TensorFlow's layouts: activations [batch, h, w, c],
// filter [kernel_h, kernel_w, in_c / groups, out_c].
struct ConvShape {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1, out_c = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;

  int64_t out_h() const {
    return (in_h + pad_top + pad_bottom - dilation_h * (kernel_h - 1) - 1) /
               stride_h +
           1;
  }
  int64_t out_w() const {
    return (in_w + pad_left + pad_right - dilation_w * (kernel_w - 1) - 1) /
               stride_w +
           1;
  }
  int64_t image_in() const { return in_h * in_w * in_c; }
  int64_t image_out() const { return out_h() * out_w() * out_c; }
  int64_t filter_size() const {
    return kernel_h * kernel_w * (in_c / groups) * out_c;
  }
  // Returns "", or what is wrong with the numbers.
  std::string problem() const;
};

enum class ConvPass { kForward, kBackwardData, kBackwardWeights };

struct ConvChoice {
  // Slices of the batch; results depend on this number, never on threads.
  int slices = 1;
  // Forward only: adds bias[out_c], then clips at zero, in the same pass.
  bool bias = false;
  bool relu = false;
  // False selects the direct sum, even where Winograd is faster.
  bool winograd = true;
};

// The arrays that a run reads and writes. `scratch` has scratch_bytes() bytes,
// aligned to 64, and is overwritten.
struct ConvBuffers {
  const float* input = nullptr;   // forward, backward weights
  const float* filter = nullptr;  // forward, backward data
  const float* bias = nullptr;    // forward with options.bias
  const float* grad = nullptr;    // dy: both backward passes
  float* result = nullptr;        // y, dx or dfilter
  void* scratch = nullptr;
};

class ConvPlan {
 public:
  virtual ~ConvPlan() = default;

  // Plans one pass. Returns null, with the reason in `*refusal`, when oneDNN is
  // slow or lacks it: use the reference kernel then. Never throws for a shape.
  // Our own loops cover 3x3 filters of stride 1 (Winograd's algorithm), and
  // forward and backward weights of one group of fewer than 8 input channels.
  static std::unique_ptr<ConvPlan> make(const ConvShape& shape, ConvPass pass,
                                        const ConvChoice& options,
                                        std::string* refusal);

  // The largest number of parts that a run is split into.
  int slices() const { return slices_; }
  size_t scratch_bytes() const { return scratch_bytes_; }
  // The implementation's own name, for reports.
  const std::string& implementation() const { return implementation_; }

  // Runs all slices on `pool` (null: serially on the caller).
  virtual void run(const ConvBuffers& buffers, ThreadPool* pool) const = 0;

 protected:
  int64_t batch_ = 1;
  int slices_ = 1;
  size_t scratch_bytes_ = 0;
  std::string implementation_;
};

// A plan whose slices are images: call begin once, then every slice in any
// order and concurrently, then finish once.
class SlicedConv : public ConvPlan {
 public:
  void run(const ConvBuffers& buffers, ThreadPool* pool) const override;

 protected:
  virtual void begin(const ConvBuffers& buffers) const = 0;
  virtual void slice(int index, const ConvBuffers& buffers) const = 0;
  virtual void finish(const ConvBuffers& buffers, ThreadPool* pool) const = 0;

  int64_t first_image(int slice) const { return batch_ * slice / slices_; }
};

// Adds parts[1..count) of `size` floats each, `stride` floats apart, into
// parts[0] along the fixed binary tree over part numbers (first neighbours,
// then neighbours of neighbours). Runs in parallel by ranges when it pays.
void tree_sum(float* parts, int count, int64_t size, int64_t stride,
              ThreadPool* pool);

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_DNNL_MATH_H_
