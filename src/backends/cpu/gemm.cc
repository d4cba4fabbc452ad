#include "backends/cpu/gemm.h"

#include <algorithm>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/loops.h"
#include "base/thread_pool.h"

namespace berth::cpu {
namespace {

constexpr int64_t kRowUnit = 8, kColUnit = 16;
// A part with fewer multiplications does not pay for its fork (~5 us).
constexpr int64_t kPartWork = 200 * 1000;

// oneDNN packs both operands, which pays when all three sizes are large. Below
// that our own loops are as fast, allocate nothing, and sum each element in one
// order however the product is split.
bool own_loops(const Gemm& g) {
  constexpr int64_t kLarge = 512;
  return g.m < kLarge || g.n < kLarge || g.k < kLarge;
}

int64_t parts_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns where part i of `parts` of `size` begins, at a multiple of `unit`.
int64_t edge(int64_t size, int64_t unit, int parts, int i) {
  return std::min(size, parts_of(size, unit) * i / parts * unit);
}

}  // namespace

GemmCut cut_gemm(int64_t m, int64_t n, int64_t k, int slices) {
  const int64_t worth = std::max<int64_t>(1, m * n * k / kPartWork);
  const int most = static_cast<int>(
      std::min<int64_t>({slices, ThreadPool::kMaxChunks, worth}));
  GemmCut best;
  double best_cost = -1;
  for (int parts = std::max(1, most); parts >= 1; --parts) {
    for (int rows = 1; rows <= parts; ++rows) {
      if (parts % rows != 0) continue;
      const int cols = parts / rows;
      if (rows > parts_of(m, kRowUnit) || cols > parts_of(n, kColUnit)) {
        continue;
      }
      // The largest part decides; reading its operands counts too.
      const double part_m = kRowUnit * parts_of(parts_of(m, kRowUnit), rows);
      const double part_n = kColUnit * parts_of(parts_of(n, kColUnit), cols);
      const double cost = part_m * part_n * k + 8.0 * k * (part_m + part_n);
      if (best_cost < 0 || cost < best_cost) {
        best_cost = cost;
        best = {rows, cols};
      }
    }
  }
  return best;
}

void gemm_part(const Gemm& g, const GemmCut& cut, int index) {
  const int row = index / cut.cols, col = index % cut.cols;
  const int64_t i0 = cut.rows == 1 ? 0 : edge(g.m, kRowUnit, cut.rows, row);
  const int64_t i1 =
      cut.rows == 1 ? g.m : edge(g.m, kRowUnit, cut.rows, row + 1);
  const int64_t j0 = cut.cols == 1 ? 0 : edge(g.n, kColUnit, cut.cols, col);
  const int64_t j1 =
      cut.cols == 1 ? g.n : edge(g.n, kColUnit, cut.cols, col + 1);
  if (i1 <= i0 || j1 <= j0) return;
  const float* a = g.a + i0 * (g.transpose_a ? 1 : g.lda);
  const float* b = g.b + j0 * (g.transpose_b ? g.ldb : 1);
  float* c = g.c + i0 * g.ldc + j0;
  // The size of the whole product chooses the kernel, so that all parts agree.
  auto* multiply = own_loops(g) ? loops().small_gemm : &sgemm;
  multiply(g.transpose_a, g.transpose_b, i1 - i0, j1 - j0, g.k, g.alpha, a,
           g.lda, b, g.ldb, g.beta, c, g.ldc);
}

void gemm(const Gemm& g) { gemm_part(g, GemmCut(), 0); }

void parallel_gemm(const Gemm& g, int slices, ThreadPool* pool) {
  const GemmCut cut = cut_gemm(g.m, g.n, g.k, slices);
  if (pool == nullptr) {
    for (int i = 0; i < cut.parts(); ++i) gemm_part(g, cut, i);
    return;
  }
  // One core reaches 20 multiplications per nanosecond at best.
  const double estimate_us = static_cast<double>(g.m) * g.n * g.k / 20e3;
  pool->parallel_for(
      cut.parts(), [&](int i) { gemm_part(g, cut, i); }, estimate_us);
}

}  // namespace berth::cpu
