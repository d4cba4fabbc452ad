// Loops: the element, row and window loops of the CPU backend, compiled once
// per instruction set and chosen once for the processor.
//
// All functions are serial, work on raw row-major float pointers of any
// alignment, allocate nothing and throw nothing; callers split the work. An
// output may be the same array as an input of the same shape, but may not
// overlap it otherwise. An element's value does not depend on where its slice
// begins. NaN propagates, as in NumPy and TensorFlow. Thread-safe.

#ifndef BERTH_BACKENDS_CPU_LOOPS_H_
#define BERTH_BACKENDS_CPU_LOOPS_H_

#include <cstdint>

namespace berth::expr {
struct BlockOps;
}

namespace berth::cpu {

enum class Isa { kV1, kV3, kV4 };

enum class UnaryOp {
  kRelu,
  kSigmoid,
  kTanh,
  kGeluTanh,
  kGeluErf,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kNeg,
  kAbs,
  kSquare,
  kReciprocal,
  kErf,
  kCount,
};

// The gradients take (first, second) as TensorFlow's ops do.
enum class BinaryOp {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kReluGrad,      // (dy, x)
  kSigmoidGrad,   // (y, dy)
  kTanhGrad,      // (y, dy)
  kGeluTanhGrad,  // (x, dy)
  kGeluErfGrad,   // (x, dy)
  kCount,
};

// One binary op in every broadcast form. `y` may be any operand of its shape.
struct BinaryLoops {
  // y[n] = a[n] op b[n]
  void (*same)(const float* a, const float* b, float* y, int64_t n);
  // y[n] = a[n] op b
  void (*scalar_right)(const float* a, float b, float* y, int64_t n);
  // y[n] = a op b[n]
  void (*scalar_left)(float a, const float* b, float* y, int64_t n);
  // y[rows, cols] = a[rows, cols] op b[cols]
  void (*row_right)(const float* a, const float* b, float* y, int64_t rows,
                    int64_t cols);
  // y[rows, cols] = a[cols] op b[rows, cols]
  void (*row_left)(const float* a, const float* b, float* y, int64_t rows,
                   int64_t cols);
};

// A pooling window over activations [batch, in_h, in_w, channels]. Positions in
// the padding count neither for the maximum nor for the mean.
struct PoolShape {
  int64_t batch = 1, in_h = 1, in_w = 1, channels = 1;
  int64_t window_h = 1, window_w = 1, stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t out_h = 1, out_w = 1;
};

struct AdamParams {
  float rate;  // lr * sqrt(1 - beta2^t) / (1 - beta1^t)
  float beta1, beta2;
  float epsilon;
  float keep = 1;  // the factor that weight decay applies to w
  bool nesterov = false;
};

// One step of `units` (at most 32) units of an LSTM for `rows` examples; see
// the op LSTM. Arrays of one value per unit begin at the first of these units
// in row 0; arrays of four gates have their gates `gate` floats apart.
struct LstmStep {
  int64_t rows = 0, units = 0, gate = 0;
  const float* mask = nullptr;  // null: every row counts
  int64_t mask_row = 0;
  const float *product = nullptr, *parts = nullptr;
  int64_t product_row = 0, product_gate = 0, parts_row = 0;
  const float *h = nullptr, *c = nullptr;  // before this step
  int64_t h_row = 0, c_row = 0;
  float *next_h = nullptr, *outputs = nullptr;
  float *gates = nullptr, *cells = nullptr;
  int64_t gates_row = 0, cells_row = 0;  // cells_row: also of the outputs
};

// The gradient of the step. `dh` [rows, units] is the following step's gradient
// and receives what a masked row passes on, else 0; `dc` is replaced.
struct LstmBackStep {
  int64_t rows = 0, units = 0, gate = 0;
  const float* mask = nullptr;
  int64_t mask_row = 0;
  const float *dy = nullptr, *gates = nullptr, *cells = nullptr, *c = nullptr;
  int64_t dy_row = 0, gates_row = 0, cells_row = 0, c_row = 0;
  const float* product = nullptr;  // null: no following step
  int64_t product_row = 0;
  float *dh = nullptr, *dc = nullptr;
  int64_t dh_row = 0;  // also of dc
  float *dz = nullptr, *dparts = nullptr;
  int64_t dz_row = 0, dparts_row = 0;
};

struct RmsPropParams {
  float rate, rho, momentum, epsilon;
};

// Selects the random numbers of a RandomStream, see base/rng.h.
struct StreamKey {
  uint32_t key[2];
  uint64_t step;
};

struct Loops {
  Isa isa;

  void (*unary[static_cast<int>(UnaryOp::kCount)])(const float* x, float* y,
                                                   int64_t n);
  BinaryLoops binary[static_cast<int>(BinaryOp::kCount)];

  // Runs expressions, see expr/block_ops.h.
  const expr::BlockOps* expr;

  void (*fill)(float value, float* y, int64_t n);
  // y[cols, rows] = x[rows, cols] transposed; ldx, ldy are row strides.
  void (*transpose)(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                    float* y, int64_t ldy);
  // x[rows, cols] = max(x + bias[cols], 0) in place; ld is the row stride.
  void (*bias_relu)(float* x, const float* bias, int64_t rows, int64_t cols,
                    int64_t ld);

  // Sum and largest element. The sum is carried in double across blocks. The
  // maximum of an empty array is -infinity; NaN wins.
  double (*sum)(const float* x, int64_t n);
  float (*max)(const float* x, int64_t n);
  // y[rows] = sums of x[rows, cols]
  void (*row_sum)(const float* x, float* y, int64_t rows, int64_t cols);
  // y[cols] = column sums of x[rows, cols] with row stride ldx; overwrites y
  void (*col_sum)(const float* x, float* y, int64_t rows, int64_t cols,
                  int64_t ldx);

  void (*softmax)(const float* x, float* y, int64_t rows, int64_t cols);
  void (*log_softmax)(const float* x, float* y, int64_t rows, int64_t cols);
  // dx = y (dy - sum(y dy)) and dx = dy - exp(y) sum(dy), per row
  void (*softmax_grad)(const float* y, const float* dy, float* dx, int64_t rows,
                       int64_t cols);
  void (*log_softmax_grad)(const float* y, const float* dy, float* dx,
                           int64_t rows, int64_t cols);
  // loss[rows] and backprop[rows, cols] (softmax minus label) of logits[rows,
  // cols]. A sparse label outside [0, cols) yields NaN. With null backprop
  // computes only the loss.
  void (*xent_dense)(const float* logits, const float* labels, float* loss,
                     float* backprop, int64_t rows, int64_t cols);
  void (*xent_i32)(const float* logits, const int32_t* labels, float* loss,
                   float* backprop, int64_t rows, int64_t cols);
  void (*xent_i64)(const float* logits, const int64_t* labels, float* loss,
                   float* backprop, int64_t rows, int64_t cols);

  // Pooling of images [first, last). The gradient goes to the first maximum of
  // the window in scan order. dx is overwritten.
  void (*max_pool)(const PoolShape& shape, const float* x, float* y,
                   int64_t first, int64_t last);
  void (*max_pool_grad)(const PoolShape& shape, const float* x, const float* y,
                        const float* dy, float* dx, int64_t first,
                        int64_t last);
  void (*avg_pool)(const PoolShape& shape, const float* x, float* y,
                   int64_t first, int64_t last);
  void (*avg_pool_grad)(const PoolShape& shape, const float* dy, float* dx,
                        int64_t first, int64_t last);

  // Batch norm over x[rows, channels]. moments: mean[channels] and the sum of
  // squared distances from it; combine slices with merge_moments.
  void (*moments)(const float* x, int64_t rows, int64_t channels, float* mean,
                  float* square_sum);
  // y = x * scale[channels] + shift[channels]
  void (*scale_shift)(const float* x, const float* scale, const float* shift,
                      float* y, int64_t rows, int64_t channels);
  // sum_dy = sum(dy), sum_dy_x = sum(dy (x - mean)) per channel
  void (*norm_grad_sums)(const float* x, const float* dy, const float* mean,
                         int64_t rows, int64_t channels, float* sum_dy,
                         float* sum_dy_x);
  // dx = k_dy dy - ((x - mean) k_x + k_one), all per channel
  void (*norm_grad)(const float* x, const float* dy, const float* mean,
                    const float* k_dy, const float* k_x, const float* k_one,
                    float* dx, int64_t rows, int64_t channels);

  // Layer norm of x[rows, d] by its rows' mean[rows] and inverse deviation
  // rstd[rows]; the gradients of scale[d] and offset[d] are sums over rows.
  void (*layer_norm)(const float* x, const float* scale, const float* offset,
                     float* y, float* mean, float* rstd, int64_t rows,
                     int64_t d, float epsilon);
  void (*layer_norm_grad)(const float* dy, const float* x, const float* scale,
                          const float* mean, const float* rstd, float* dx,
                          float* dscale, float* doffset, int64_t rows,
                          int64_t d);

  // TensorFlow's updates: ApplyAdam, ApplyGradientDescent, ApplyMomentum
  // (v = momentum v + g; w -= rate v) and ApplyKerasMomentum
  // (v = momentum v - rate g; w += v).
  void (*adam)(float* w, const float* g, float* m, float* v, int64_t n,
               const AdamParams& params);
  // mg null: not centered
  void (*rms_prop)(float* w, const float* g, float* mg, float* ms, float* mom,
                   int64_t n, const RmsPropParams& params);
  void (*adagrad)(float* w, const float* g, float* accum, int64_t n, float rate,
                  float epsilon);
  void (*sgd)(float* w, const float* g, int64_t n, float rate);
  void (*momentum)(float* w, const float* g, float* v, int64_t n, float rate,
                   float momentum, bool nesterov);
  void (*keras_momentum)(float* w, const float* g, float* v, int64_t n,
                         float rate, float momentum, bool nesterov);

  // Elements [begin, begin + n) of a random tensor.
  void (*uniform)(const StreamKey& key, uint64_t begin, float* y, int64_t n);
  void (*normal)(const StreamKey& key, uint64_t begin, float* y, int64_t n);
  // y = uniform >= rate ? x * scale : 0; its gradient is the same call on dy
  void (*dropout)(const StreamKey& key, uint64_t begin, const float* x,
                  float* y, int64_t n, float rate, float scale);

  // c[m, n] = alpha op(a) op(b) + beta c, as sgemm.
  void (*small_gemm)(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                     int64_t k, float alpha, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float beta, float* c,
                     int64_t ldc);
  // c[m, 32] = a[m, k] panel[k, 32], equal to small_gemm bit for bit, for
  // panels that are read one after the other: it prefetches the next one.
  void (*panel_gemm)(int64_t m, int64_t k, const float* a, int64_t lda,
                     const float* panel, float* c, int64_t ldc);
  // Adds to filter[taps, out_c] the products of dy[out_h, out_w, out_c] with
  // the padded image. Tap t of output (oy, ox) is at oy * step_y + ox * step_x
  // + offsets[t].
  void (*conv_taps)(const float* image, int64_t step_y, int64_t step_x,
                    const int32_t* offsets, int taps, const float* dy,
                    int64_t out_h, int64_t out_w, int64_t out_c, float* filter);
  // y[out_h, out_w, out_c] = the same taps of the padded image times
  // filter[taps, out_c], plus bias[out_c] unless null, clipped at 0 if relu.
  void (*conv_pixels)(const float* image, int64_t step_y, int64_t step_x,
                      const int32_t* offsets, int taps, const float* filter,
                      const float* bias, bool relu, int64_t out_h,
                      int64_t out_w, int64_t out_c, float* y);

  // Convert between 16-bit elements and floats, rounding to nearest even.
  void (*widen_bfloat16)(const uint16_t* x, float* y, int64_t n);
  void (*round_bfloat16)(const float* x, uint16_t* y, int64_t n);
  void (*widen_float16)(const uint16_t* x, float* y, int64_t n);
  void (*round_float16)(const float* x, uint16_t* y, int64_t n);

  void (*lstm_step)(const LstmStep& step);
  void (*lstm_back_step)(const LstmBackStep& step);
};

// Returns the loops for this processor. BERTH_ISA=v1, v2, v3 or v4 (x86-64
// levels; v2 runs the v1 loops) forces a set; throws InvalidArgument for
// another value or one that the processor lacks.
const Loops& loops();

// True when BERTH_ISA made the choice.
bool isa_is_forced();

// Returns the loops compiled for `isa`, null when the processor lacks it.
const Loops* loops_for(Isa isa);

// Returns the set that `forced` selects (null or "": not forced); throws as
// loops() does.
const Loops& select_loops(const char* forced);

// Returns "v1", "v3" or "v4".
const char* isa_name(Isa isa);

// Merges moments of `count_b` rows into those of `count_a` rows, per channel
// (Chan et al.); the counts may be 0.
void merge_moments(int64_t count_a, float* mean_a, float* square_sum_a,
                   int64_t count_b, const float* mean_b,
                   const float* square_sum_b, int64_t channels);

inline auto unary_loop(UnaryOp op) {
  return loops().unary[static_cast<int>(op)];
}
inline const BinaryLoops& binary_loops(BinaryOp op) {
  return loops().binary[static_cast<int>(op)];
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_LOOPS_H_
