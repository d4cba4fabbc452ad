// Loops that the reference kernels share: broadcasting and dtype dispatch.

#ifndef BERTH_BACKENDS_REFERENCE_LOOPS_H_
#define BERTH_BACKENDS_REFERENCE_LOOPS_H_

#include <array>
#include <type_traits>
#include <vector>

#include "berth/errors.h"
#include "op/kernel.h"
#include "tensor/visit_dtype.h"

namespace berth::reference {

// The types that kernels compute in; narrow types go through these (widened.h).
template <class T>
inline constexpr bool is_number_type =
    std::is_floating_point_v<T> || std::is_same_v<T, int32_t> ||
    std::is_same_v<T, int64_t> || std::is_same_v<T, uint8_t> ||
    std::is_same_v<T, uint64_t>;

// Calls fn(T{}) with the C++ type of `dtype`: one of kOwnNumbers, of these and
// bool, of these and complex128, of float32, float64 and complex128.
template <class Fn>
void with_number(DType dtype, Fn&& fn) {
  visit_dtype(dtype, "reference kernel", [&](auto type) {
    if constexpr (is_number_type<decltype(type)>) {
      fn(type);
    } else {
      throw errors::Internal("reference kernel: not a number type");
    }
  });
}
// Also for int8, int16, uint16 and uint32, as they are.
template <class Fn>
void with_exact_number(DType dtype, Fn&& fn) {
  visit_dtype(dtype, "reference kernel", [&]<class T>(T type) {
    if constexpr (is_number_type<T> ||
                  (std::is_integral_v<T> && !std::is_same_v<T, bool>)) {
      fn(type);
    } else {
      throw errors::Internal("reference kernel: not a number type");
    }
  });
}
template <class Fn>
void with_any(DType dtype, Fn&& fn) {
  if (dtype == bool_) return fn(bool{});
  with_number(dtype, fn);
}
template <class Fn>
void with_ring(DType dtype, Fn&& fn) {
  if (dtype == complex128) return fn(std::complex<double>{});
  with_number(dtype, fn);
}
template <class Fn>
void with_floating(DType dtype, Fn&& fn) {
  return dtype == float64 ? fn(double{}) : fn(float{});
}
template <class Fn>
void with_inexact(DType dtype, Fn&& fn) {
  if (dtype == complex128) return fn(std::complex<double>{});
  with_floating(dtype, fn);
}

inline constexpr DTypeSet kOwnNumbers = kNumberTypes | dtype_bit(uint64);
inline constexpr DTypeSet kRingTypes = kOwnNumbers | dtype_bit(complex128);
inline constexpr DTypeSet kRootTypes = kFloatingTypes | dtype_bit(complex128);

// Calls fn(T{}) with a type as large as an element of `dtype`, which is any of
// kEveryType: for kernels that only move elements.
template <class Fn>
void with_storage(DType dtype, Fn&& fn) {
  switch (size_of(dtype)) {
    case 1:
      return fn(uint8_t{});
    case 2:
      return fn(uint16_t{});
    case 4:
      return fn(uint32_t{});
    case 8:
      return fn(uint64_t{});
    case 16:
      return fn(std::array<uint64_t, 2>{});
    default:
      throw errors::Internal("reference kernel: not a type of elements");
  }
}

// The type of sums. Wide, since this is the oracle. Integers wrap.
template <class T>
using Wide = std::conditional_t<
    is_complex_type<T>, std::complex<double>,
    std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>>;

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
