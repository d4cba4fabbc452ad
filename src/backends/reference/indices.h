// Indices of kernels: int32 or int64, checked.

#ifndef BERTH_BACKENDS_REFERENCE_INDICES_H_
#define BERTH_BACKENDS_REFERENCE_INDICES_H_

#include "backends/reference/loops.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

inline int64_t index_at(const View& indices, int64_t i) {
  return indices.dtype == int32 ? indices.as<int32_t>()[i]
                                : indices.as<int64_t>()[i];
}

inline void set_index(const View& v, int64_t i, int64_t value) {
  if (v.dtype == int32) {
    v.as<int32_t>()[i] = static_cast<int32_t>(value);
  } else {
    v.as<int64_t>()[i] = value;
  }
}

// Returns index i, which must be a position on `axis` of `target`. Throws
// errors::InvalidArgument naming both.
int64_t checked_index(const KernelCall& c, const View& indices, int64_t i,
                      const Shape& target, int axis);

inline int gather_batch_dims(const KernelCall& c, const View& indices) {
  const auto dims = static_cast<int>(c.attr<int64_t>("batch_dims"));
  return dims < 0 ? dims + indices.shape->rank() : dims;
}

// Calls fn(p, g) for each run of `inner` elements, with its beginning in the
// params and in the gathered array. Throws errors::InvalidArgument for an index
// out of range.
template <class Fn>
void for_each_gathered(const KernelCall& c, const Shape& params, Fn&& fn) {
  const View& indices = c.in[1];
  const int axis = normalize_axis(c.attr<int64_t>("axis"), params.rank(),
                                  c.op->name().c_str());
  const int batch = gather_batch_dims(c, indices);
  const int64_t batches = product_of(params, 0, batch);
  const int64_t outer = product_of(params, batch, axis);
  const int64_t inner = product_of(params, axis + 1, params.rank());
  const int64_t dim = params[axis];
  const int64_t n = product_of(*indices.shape, batch, indices.shape->rank());
  Scratch<int64_t> places(static_cast<size_t>(n));
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t i = 0; i < n; ++i) {
      places[static_cast<size_t>(i)] =
          checked_index(c, indices, b * n + i, params, axis);
    }
    // In the order of memory: along another axis than the first, the rows of
    // one index lie far apart.
    for (int64_t o = b * outer; o < (b + 1) * outer; ++o) {
      for (int64_t i = 0; i < n; ++i) {
        fn((o * dim + places[static_cast<size_t>(i)]) * inner,
           (o * n + i) * inner, inner);
      }
    }
  }
}

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_INDICES_H_
