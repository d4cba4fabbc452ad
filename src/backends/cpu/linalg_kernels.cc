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
    auto a = copy_of<T>(c.in[0], b, c.attr<bool>("adjoint"));
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
  const char form = c.attr<bool>("adjoint") ? 'T' : 'N';
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
    auto a = copy_of<T>(c.in[0], b, c.attr<bool>("adjoint"));
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
  const MatrixBatch s = batch_of(c.in[0]);
  if (s.rows == 0) {  // the determinant of an empty matrix is 1
    reference::with_floating(c.in[0].dtype, [&]<class T>(T) {
      std::fill_n(c.out[0].as<T>(), s.count, T{1});
    });
  }
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    auto a = copy_of<T>(c.in[0], b);
    reference::Scratch<lapack_int> pivots(static_cast<size_t>(n));
    const lapack_int info =
        Lapack<T>::getrf(LAPACK_ROW_MAJOR, n, n, a.data(), n, pivots.data());
    if (info < 0) check_lapack(c, b, info, "");
    T det = 1;
    for (int64_t i = 0; i < n; ++i) {
      const T on_diagonal = a[static_cast<size_t>(i * n + i)];
      det *= pivots[i] == i + 1 ? on_diagonal : -on_diagonal;
    }
    c.out[0].as<T>()[b] = det;
  });
}

}  // namespace

void add_linalg(KernelTable& t) {
  t.direct("Cholesky", kFloatingTypes, &cholesky, "lapack");
  t.direct("MatrixSolve", kFloatingTypes, &solve, "lapack");
  t.direct("MatrixTriangularSolve", kFloatingTypes, &triangular_solve,
           "lapack");
  t.direct("MatrixInverse", kFloatingTypes, &inverse, "lapack");
  t.direct("MatrixDeterminant", kFloatingTypes, &determinant, "lapack");
}

}  // namespace berth::cpu
