// Factorisations and solvers by LAPACK, one matrix of the batch at a time; the
// executor splits the batch.

#include "backends/cpu/kernels.h"
#include "backends/cpu/lapack.h"

namespace berth::cpu {

namespace {

void cholesky(const KernelCall& c) {
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    const int64_t size = int64_t{n} * n;
    T* y = c.out[0].as<T>() + b * size;
    std::copy_n(c.in[0].as<T>() + b * size, size, y);
    for (int64_t i = 0; i < n; ++i) {
      std::fill(y + i * n + i + 1, y + (i + 1) * n, T{});
    }
    check_lapack(c, b, Lapack<T>::potrf(LAPACK_ROW_MAJOR, 'L', n, y, n),
                 "not positive definite");
  });
}

void solve(const KernelCall& c) {
  const MatrixBatch right = batch_of(c.in[1]);
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    T* y = c.out[0].as<T>() + b * right.size();
    std::copy_n(c.in[1].as<T>() + b * right.size(), right.size(), y);
    if (right.columns == 0) return;
    auto a = operand_of<T>(c, b);
    reference::Scratch<lapack_int> pivots(static_cast<size_t>(n));
    check_lapack(c, b,
                 Lapack<T>::gesv(LAPACK_ROW_MAJOR, n, right.columns, a.data(),
                                 n, pivots.data(), y, right.columns),
                 "singular");
  });
}

void triangular_solve(const KernelCall& c) {
  const MatrixBatch right = batch_of(c.in[1]);
  const char triangle = c.attr<bool>("lower") ? 'L' : 'U';
  const char form = c.attr<bool>("adjoint") ? 'C' : 'N';
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    T* y = c.out[0].as<T>() + b * right.size();
    std::copy_n(c.in[1].as<T>() + b * right.size(), right.size(), y);
    if (right.columns == 0) return;
    check_lapack(c, b,
                 Lapack<T>::trtrs(
                     LAPACK_ROW_MAJOR, triangle, form, 'N', n, right.columns,
                     c.in[0].as<T>() + b * int64_t{n} * n, n, y, right.columns),
                 "singular");
  });
}

void inverse(const KernelCall& c) {
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    auto a = operand_of<T>(c, b);
    reference::Scratch<lapack_int> pivots(static_cast<size_t>(n));
    check_lapack(
        c, b,
        Lapack<T>::getrf(LAPACK_ROW_MAJOR, n, n, a.data(), n, pivots.data()),
        "singular");
    check_lapack(
        c, b, Lapack<T>::getri(LAPACK_ROW_MAJOR, n, a.data(), n, pivots.data()),
        "singular");
    std::copy(a.begin(), a.end(), c.out[0].as<T>() + b * int64_t{n} * n);
  });
}

void determinant(const KernelCall& c) {
  for_each_elimination(c, [&]<class T>(T, int64_t b, auto& pivots) {
    T det = 1;
    for (const T pivot : pivots) det *= pivot;
    c.out[0].as<T>()[b] = det;
  });
}

}  // namespace

void add_linalg(KernelTable& t) {
  t.direct("Cholesky", kLapackTypes, &cholesky, "lapack");
  t.direct("MatrixSolve", kLapackTypes, &solve, "lapack");
  t.direct("MatrixTriangularSolve", kLapackTypes, &triangular_solve, "lapack");
  t.direct("MatrixInverse", kLapackTypes, &inverse, "lapack");
  t.direct("MatrixDeterminant", kLapackTypes, &determinant, "lapack");
}

}  // namespace berth::cpu
