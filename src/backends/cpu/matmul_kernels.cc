// Matrix products.

#include <cstring>

#include "backends/cpu/gemm.h"
#include "backends/cpu/kernels.h"

namespace berth::cpu {

namespace {

// `batch` products of equal shape, with operands one after the other.
class MatMulKernel : public Prepared {
 public:
  MatMulKernel(const Gemm& gemm, int64_t batch, int slices)
      : gemm_(gemm), batch_(batch), slices_(slices) {}

  void run(const KernelCall& c) const override {
    Gemm g = gemm_;
    g.a = c.in[0].as<float>();
    g.b = c.in[1].as<float>();
    g.c = c.out[0].as<float>();
    // Operands may be rows of wider arrays.
    if (c.in[0].pitch) g.lda = c.in[0].pitch;
    if (c.in[1].pitch) g.ldb = c.in[1].pitch;
    if (c.out[0].pitch) g.ldc = c.out[0].pitch;
    const int64_t rows_a = g.transpose_a ? g.k : g.m;
    const int64_t rows_b = g.transpose_b ? g.n : g.k;
    if (g.m * g.n * batch_ == 0) return;
    if (g.k == 0) {
      for (int64_t i = 0; i < batch_ * g.m; ++i) {
        std::memset(g.c + i * g.ldc, 0, float_bytes(g.n));
      }
      return;
    }
    if (batch_ == 1) return parallel_gemm(g, slices_, c.context->pool);
    const int64_t work = g.m * g.n * g.k;
    // An element loop takes about as long per float as 8 multiplications.
    const int64_t floats = batch_ * work / 8;
    const int parts = cut_parts(batch_, floats, slices_);
    run_parts(c, parts, floats, [&](int part) {
      Gemm one = g;
      const int64_t end = part_begin(batch_, parts, part + 1);
      for (int64_t i = part_begin(batch_, parts, part); i < end; ++i) {
        one.a = g.a + i * rows_a * g.lda;
        one.b = g.b + i * rows_b * g.ldb;
        one.c = g.c + i * g.m * g.ldc;
        gemm(one);
      }
    });
  }

 private:
  const Gemm gemm_;
  const int64_t batch_;
  const int slices_;
};

bool same_batch(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i + 2 < a.rank(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

std::unique_ptr<Prepared> matmul(const PrepareArgs& args) {
  const Shape &a = *args.in[0].shape, &b = *args.in[1].shape;
  const Shape& out = args.out[0].shape;
  const int ra = a.rank(), rb = b.rank();
  Gemm g;
  g.transpose_a = args.attr<bool>("transpose_a");
  g.transpose_b = args.attr<bool>("transpose_b");
  g.m = out[out.rank() - 2];
  g.n = out[out.rank() - 1];
  g.k = g.transpose_a ? a[ra - 2] : a[ra - 1];
  int64_t batch = 1;
  if (same_batch(a, b)) {
    for (int i = 0; i + 2 < ra; ++i) batch *= a[i];
  } else if (rb == 2 && !g.transpose_a) {
    for (int i = 0; i + 2 < ra; ++i) g.m *= a[i];  // as one product
  } else {
    return nullptr;
  }
  g.lda = g.transpose_a ? g.m : g.k;
  g.ldb = g.transpose_b ? g.k : g.n;
  g.ldc = g.n;
  return std::make_unique<MatMulKernel>(g, batch, args.slices);
}

}  // namespace

void add_matmul(KernelTable& t) {
  t.add("MatMul", {.label = "gemm",
                   .dtypes = kFloat32,
                   .prepare = &matmul,
                   .parallel = true,
                   .pitched = true});
}

}  // namespace berth::cpu
