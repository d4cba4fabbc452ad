// Plain loops over matrices: the oracle of LAPACK's results on the host.
// Simulated accelerators lack these ops, as real ones may.

#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "backends/reference/matrix.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

// Complex or not, in one way.
using Number = std::complex<double>;
using Numbers = Scratch<Number>;

template <class T>
Numbers loaded(const View& v, int64_t b, bool adjoint = false) {
  Numbers m = load<T, Number>(v, b, adjoint);
  if (adjoint) {
    for (Number& x : m) x = std::conj(x);
  }
  return m;
}

template <class Fn>
void each_matrix(const KernelCall& c, Fn&& fn) {
  const auto all = [&](auto type) {
    const int64_t count = batch_of(c.in[0]).count;
    for (int64_t b = 0; b < count; ++b) fn(type, b);
  };
  if (c.in[0].dtype == complex64) return all(std::complex<float>{});
  with_inexact(c.in[0].dtype, all);
}

[[noreturn]] void fail(const KernelCall& c, int64_t b, const char* what) {
  throw errors::InvalidArgument(
      fmt::format("{}: matrix {} of the batch is {}", c.op->name(), b, what));
}

void cholesky(const KernelCall& c) {
  const int64_t n = batch_of(c.in[0]).rows;
  each_matrix(c, [&]<class T>(T, int64_t b) {
    const Numbers a = loaded<T>(c.in[0], b);
    Numbers l(a.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        Number sum = a[i * n + j];
        for (int64_t k = 0; k < j; ++k)
          sum -= l[i * n + k] * std::conj(l[j * n + k]);
        if (i == j && !(sum.real() > 0)) fail(c, b, "not positive definite");
        l[i * n + j] = i == j ? std::sqrt(sum.real()) : sum / l[j * n + j];
      }
    }
    store<T>(c.out[0], b, l);
  });
}

// Eliminates `a` [n, n] with partial pivoting, applying the same steps to `x`
// [n, k]; returns the determinant. Sets `regular` to false when a pivot is 0.
Number eliminate(Numbers* a, Numbers* x, int64_t n, int64_t k, bool* regular) {
  Number det = 1;
  *regular = true;
  for (int64_t p = 0; p < n; ++p) {
    int64_t best = p;
    for (int64_t i = p + 1; i < n; ++i) {
      if (std::abs((*a)[i * n + p]) > std::abs((*a)[best * n + p])) best = i;
    }
    const Number pivot = (*a)[best * n + p];
    det *= best == p ? pivot : -pivot;
    if (pivot == 0.0) {
      *regular = false;
      continue;
    }
    for (int64_t j = 0; j < n; ++j)
      std::swap((*a)[p * n + j], (*a)[best * n + j]);
    for (int64_t j = 0; j < k; ++j)
      std::swap((*x)[p * k + j], (*x)[best * k + j]);
    for (int64_t i = p + 1; i < n; ++i) {
      const Number factor = (*a)[i * n + p] / pivot;
      for (int64_t j = p; j < n; ++j)
        (*a)[i * n + j] -= factor * (*a)[p * n + j];
      for (int64_t j = 0; j < k; ++j)
        (*x)[i * k + j] -= factor * (*x)[p * k + j];
    }
  }
  return det;
}

// x [n, k] = triangular a^-1 x.
bool substitute(const Numbers& a, Numbers* x, int64_t n, int64_t k,
                bool lower) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = lower ? step : n - 1 - step;
    if (a[i * n + i] == 0.0) return false;
    const int64_t from = lower ? 0 : i + 1, to = lower ? i : n;
    for (int64_t c = 0; c < k; ++c) {
      Number sum = (*x)[i * k + c];
      for (int64_t j = from; j < to; ++j) sum -= a[i * n + j] * (*x)[j * k + c];
      (*x)[i * k + c] = sum / a[i * n + i];
    }
  }
  return true;
}

template <class T>
void solve_one(const KernelCall& c, int64_t b, Numbers x, int64_t k) {
  const int64_t n = batch_of(c.in[0]).rows;
  Numbers a = loaded<T>(c.in[0], b, c.attr<bool>("adjoint"));
  bool regular = false;
  eliminate(&a, &x, n, k, &regular);
  if (!regular || !substitute(a, &x, n, k, false)) fail(c, b, "singular");
  store<T>(c.out[0], b, x);
}

void solve(const KernelCall& c) {
  each_matrix(c, [&]<class T>(T, int64_t b) {
    solve_one<T>(c, b, loaded<T>(c.in[1], b), batch_of(c.in[1]).columns);
  });
}

void inverse(const KernelCall& c) {
  const int64_t n = batch_of(c.in[0]).rows;
  each_matrix(c, [&](auto type, int64_t b) {
    Numbers one(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i) one[i * n + i] = 1;
    solve_one<decltype(type)>(c, b, one, n);
  });
}

void triangular_solve(const KernelCall& c) {
  const bool adjoint = c.attr<bool>("adjoint");
  const bool lower = c.attr<bool>("lower") != adjoint;
  const int64_t n = batch_of(c.in[0]).rows, k = batch_of(c.in[1]).columns;
  each_matrix(c, [&]<class T>(T, int64_t b) {
    Numbers x = loaded<T>(c.in[1], b);
    if (!substitute(loaded<T>(c.in[0], b, adjoint), &x, n, k, lower)) {
      fail(c, b, "singular");
    }
    store<T>(c.out[0], b, x);
  });
}

void determinant(const KernelCall& c) {
  const int64_t n = batch_of(c.in[0]).rows;
  each_matrix(c, [&]<class T>(T, int64_t b) {
    Numbers a = loaded<T>(c.in[0], b), none;
    bool regular = false;
    const Number det = eliminate(&a, &none, n, 0, &regular);
    c.out[0].as<T>()[b] = convert_element<T>(det);
  });
}

}  // namespace

void add_linalg(KernelTable& t) {
  t.direct("Cholesky", kFloatingTypes | kComplexTypes, &cholesky, "reference");
  t.direct("MatrixSolve", kFloatingTypes | kComplexTypes, &solve, "reference");
  t.direct("MatrixTriangularSolve", kFloatingTypes | kComplexTypes,
           &triangular_solve, "reference");
  t.direct("MatrixInverse", kFloatingTypes | kComplexTypes, &inverse,
           "reference");
  t.direct("MatrixDeterminant", kFloatingTypes | kComplexTypes, &determinant,
           "reference");
}

}  // namespace berth::reference
