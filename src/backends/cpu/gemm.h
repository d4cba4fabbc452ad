// Matrix products split into slices over a pool.
//
// Results depend on the shape and the slice count alone, never on the number of
// threads. Thread-safe.

#ifndef BERTH_BACKENDS_CPU_GEMM_H_
#define BERTH_BACKENDS_CPU_GEMM_H_

#include <cstddef>
#include <cstdint>

namespace berth {
class ThreadPool;
}

namespace berth::cpu {

// c[m, n] = alpha op(a)[m, k] op(b)[k, n] + beta c; see sgemm().
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1;
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  float beta = 0;
  float* c = nullptr;
  int64_t ldc = 0;
};

// How a product is split: `rows` x `cols` parts of c. Split rows come in
// multiples of 8, split columns in multiples of 16.
struct GemmCut {
  int rows = 1;
  int cols = 1;
  int parts() const { return rows * cols; }
};

// Returns a split into at most `slices` parts (at most 32); fewer when parts
// would be too small to pay for the fork.
GemmCut cut_gemm(int64_t m, int64_t n, int64_t k, int slices);

// Runs part `index` of a split serially: with our own loops, which allocate
// nothing, unless m, n and k all exceed 512, else with oneDNN. With our own
// loops the result equals every other split bit for bit.
void gemm_part(const Gemm& gemm, const GemmCut& cut, int index);

// Runs a whole product serially.
void gemm(const Gemm& gemm);

// Runs all parts of cut_gemm(m, n, k, slices) on `pool` (null: serially).
void parallel_gemm(const Gemm& gemm, int slices, ThreadPool* pool);

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_GEMM_H_
