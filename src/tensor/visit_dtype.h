// visit_dtype: from a DType to its C++ type, in one place.
//
// Calls templates over element types by dtype. Pure; thread-safe.

#ifndef BERTH_TENSOR_VISIT_DTYPE_H_
#define BERTH_TENSOR_VISIT_DTYPE_H_

#include <fmt/format.h>

#include <complex>
#include <type_traits>
#include <utility>

#include "berth/dtype.h"
#include "berth/errors.h"

namespace berth {

// Calls fn(T{}) with the element type T of `dtype` and returns its result; T
// is one of float, double, int32_t, int64_t, uint8_t, bool, bfloat16_t,
// float16_t, int8_t, std::complex<float>, std::complex<double>, int16_t,
// uint16_t, uint32_t, uint64_t. Throws errors::Unimplemented "<what> of string"
// for others.
template <class Fn>
auto visit_dtype(DType dtype, const char* what, Fn&& fn) {
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
    case DType::kBool:
      return fn(bool{});
    case DType::kBFloat16:
      return fn(bfloat16_t{});
    case DType::kFloat16:
      return fn(float16_t{});
    case DType::kInt8:
      return fn(int8_t{});
    case DType::kComplex64:
      return fn(std::complex<float>{});
    case DType::kComplex128:
      return fn(std::complex<double>{});
    case DType::kInt16:
      return fn(int16_t{});
    case DType::kUint16:
      return fn(uint16_t{});
    case DType::kUint32:
      return fn(uint32_t{});
    case DType::kUint64:
      return fn(uint64_t{});
    case DType::kInvalid:
    case DType::kResource:
    case DType::kString:
    case DType::kVariant:
      break;
  }
  throw errors::Unimplemented(fmt::format("{} of {}", what, name_of(dtype)));
}

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;
template <class T>
inline constexpr bool is_half_type =
    std::is_same_v<T, bfloat16_t> || std::is_same_v<T, float16_t>;

// Converts one element as TensorFlow's cast does: a complex number loses its
// imaginary part, anything but zero is true.
template <class To, class From>
To convert_element(const From& v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      return To(static_cast<typename To::value_type>(v.real()),
                static_cast<typename To::value_type>(v.imag()));
    } else {
      return convert_element<To>(v.real());
    }
  } else if constexpr (is_complex_type<To>) {
    return To(convert_element<typename To::value_type>(v));
  } else if constexpr (is_half_type<From>) {
    return convert_element<To>(static_cast<float>(v));
  } else if constexpr (is_half_type<To>) {
    return To(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace berth

#endif  // BERTH_TENSOR_VISIT_DTYPE_H_
