// Batches of matrices in double precision.

#ifndef BERTH_BACKENDS_REFERENCE_MATRIX_H_
#define BERTH_BACKENDS_REFERENCE_MATRIX_H_

#include "backends/reference/loops.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

// Row-major.
using Matrix = Scratch<double>;

struct Matrices {
  int64_t count, rows, columns;
  int64_t size() const { return rows * columns; }
};
inline Matrices batch_of(const View& v) {
  const int rank = v.shape->rank();
  return {product_of(*v.shape, 0, rank - 2), v.dim(rank - 2), v.dim(rank - 1)};
}

// In numbers of type N, which has room for T.
template <class T, class N = double>
Scratch<N> load(const View& v, int64_t b, bool transposed = false) {
  const Matrices s = batch_of(v);
  const T* x = v.as<T>() + b * s.size();
  Scratch<N> m(static_cast<size_t>(s.size()));
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      m[transposed ? j * s.rows + i : i * s.columns + j] =
          convert_element<N>(x[i * s.columns + j]);
    }
  }
  return m;
}

template <class T, class N>
void store(const View& v, int64_t b, const Scratch<N>& m) {
  T* y = v.as<T>() + b * static_cast<int64_t>(m.size());
  for (size_t i = 0; i < m.size(); ++i) y[i] = convert_element<T>(m[i]);
}

// Calls fn(T{}, b) for each matrix of the batch.
template <class Fn>
void for_each_matrix(const KernelCall& c, Fn&& fn) {
  const Matrices s = batch_of(c.in[0]);
  with_floating(c.in[0].dtype, [&](auto type) {
    for (int64_t b = 0; b < s.count; ++b) fn(type, b);
  });
}

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_MATRIX_H_
