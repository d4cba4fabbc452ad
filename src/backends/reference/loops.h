// Loops that the reference kernels share: broadcasting and dtype dispatch.

#ifndef BERTH_BACKENDS_REFERENCE_LOOPS_H_
#define BERTH_BACKENDS_REFERENCE_LOOPS_H_

#include <array>
#include <type_traits>
#include <vector>

#include "berth/errors.h"
#include "op/kernel.h"

namespace berth::reference {

// Calls fn(T{}) with the C++ type of `dtype`.
template <class Fn>
void with_number(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    case DType::kInt32:
      return fn(int32_t{});
    case DType::kInt64:
      return fn(int64_t{});
    case DType::kUint8:
      return fn(uint8_t{});
    default:
      break;
  }
  throw errors::Internal("reference kernel: not a number type");
}
template <class Fn>
void with_any(DType dtype, Fn&& fn) {
  if (dtype == bool_) return fn(bool{});
  with_number(dtype, fn);
}
template <class Fn>
void with_floating(DType dtype, Fn&& fn) {
  return dtype == float64 ? fn(double{}) : fn(float{});
}

// What sums are kept in: this is the oracle. Integers wrap.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// Row-major strides in elements, 0 where `shape` is broadcast to `out`.
std::array<int64_t, kMaxRank> broadcast_strides(const Shape& shape,
                                                const Shape& out);

// Row-major strides of `shape` in elements.
std::array<int64_t, kMaxRank> dense_strides(const Shape& shape);

// Calls fn(i, a, b) for each element i of `out` with the offsets of the
// operands, in row-major order.
template <class Fn>
void for_each_broadcast(const Shape& out, const Shape& a, const Shape& b,
                        Fn&& fn) {
  const int64_t n = out.num_elements();
  if (a == out && b == out) {
    for (int64_t i = 0; i < n; ++i) fn(i, i, i);
    return;
  }
  const auto sa = broadcast_strides(a, out), sb = broadcast_strides(b, out);
  std::array<int64_t, kMaxRank> at{};
  int64_t oa = 0, ob = 0;
  for (int64_t i = 0; i < n; ++i) {
    fn(i, oa, ob);
    for (int d = out.rank() - 1; d >= 0; --d) {
      oa += sa[d];
      ob += sb[d];
      if (++at[d] < out[d]) break;
      oa -= sa[d] * out[d];
      ob -= sb[d] * out[d];
      at[d] = 0;
    }
  }
}

// Calls fn(i, offset) for each element i of `shape` in row-major order, where
// offset = start + sum of index * stride.
template <class Fn>
void for_each_strided(const Shape& shape,
                      const std::array<int64_t, kMaxRank>& strides,
                      int64_t start, Fn&& fn) {
  const int64_t n = shape.num_elements();
  std::array<int64_t, kMaxRank> at{};
  int64_t offset = start;
  for (int64_t i = 0; i < n; ++i) {
    fn(i, offset);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      offset += strides[d];
      if (++at[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
}

// Fills an array with zero bytes.
void set_zero(const View& v);

// Returns the product of dimensions [from, to).
int64_t product_of(const Shape& shape, int from, int to);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_LOOPS_H_
