// Slices, their gradients and assignments.

#include <cstring>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "op/slice_spec.h"

namespace berth::reference {

namespace {

// The positions of a slice in the full array.
struct StridedPlaces {
  Shape shape;  // of the slice, including axes that an index drops
  std::array<int64_t, kMaxRank> strides{};
  int64_t start = 0;
};

StridedPlaces strided_places(const KernelCall& c, const Shape& full) {
  const auto axes = slice_axes(*c.op, c.attrs, full);
  const auto own = dense_strides(full);
  StridedPlaces p;
  for (int i = 0; i < full.rank(); ++i) {
    p.shape.push_back(axes[i].size);
    p.strides[i] = axes[i].stride * own[i];
    p.start += axes[i].begin * own[i];
  }
  return p;
}

void take_strided(const KernelCall& c, const StridedPlaces& p) {
  with_storage(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for_each_strided(p.shape, p.strides, p.start,
                     [&](int64_t i, int64_t from) { y[i] = x[from]; });
  });
}

void slice(const KernelCall& c) {
  const auto& begin = c.attr<std::vector<int64_t>>("begin");
  StridedPlaces p;
  p.shape = *c.out[0].shape;
  p.strides = dense_strides(*c.in[0].shape);
  for (size_t i = 0; i < begin.size(); ++i) p.start += begin[i] * p.strides[i];
  take_strided(c, p);
}

void strided_slice(const KernelCall& c) {
  take_strided(c, strided_places(c, *c.in[0].shape));
}

// Writes the elements of `part` into the slice of output 0.
void put(const KernelCall& c, const View& part) {
  const StridedPlaces p = strided_places(c, *c.out[0].shape);
  with_storage(part.dtype, [&]<class T>(T) {
    const T* x = part.as<T>();
    T* y = c.out[0].as<T>();
    for_each_strided(p.shape, p.strides, p.start,
                     [&](int64_t i, int64_t to) { y[to] = x[i]; });
  });
}

void strided_slice_grad(const KernelCall& c) {
  set_zero(c.out[0]);
  put(c, c.in[0]);
}

void slice_update(const KernelCall& c) {
  const size_t bytes =
      static_cast<size_t>(c.out[0].size()) * size_of(c.out[0].dtype);
  if (bytes > 0) std::memcpy(c.out[0].data, c.in[0].data, bytes);
  put(c, c.in[1]);
}

}  // namespace

void add_slice(KernelTable& t) {
  t.direct("Slice", kEveryType, &slice, "reference");
  t.direct("StridedSlice", kEveryType, &strided_slice, "reference");
  t.direct("TensorStridedSliceUpdate", kEveryType, &slice_update, "reference");
  t.direct("StridedSliceGrad", kEveryType, &strided_slice_grad, "reference");
  t.direct("StridedSliceGradLike", kEveryType, &strided_slice_grad,
           "reference");
}

}  // namespace berth::reference
