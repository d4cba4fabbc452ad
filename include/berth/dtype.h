// DType: the element type of a tensor. Values; thread-safe.
//
// Names are TensorFlow's (tf.float32 -> berth::float32; tf.bool -> bool_).

#ifndef BERTH_DTYPE_H_
#define BERTH_DTYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "berth/half.h"

namespace berth {

enum class DType : uint8_t {
  kInvalid = 0,
  kFloat32,
  kFloat64,
  kInt32,
  kInt64,
  kUint8,
  kBool,
  kResource,  // host handle of a Variable; never holds numbers
  kBFloat16,
  kFloat16,
  kInt8,
  kComplex64,
  kComplex128,
  kString,   // text, on the host only
  kVariant,  // an opaque value of a graph text; no tensor has it
  kInt16,
  kUint16,
  kUint32,
  kUint64,
};

inline constexpr int kNumDTypes = 19;

inline constexpr DType float32 = DType::kFloat32;
inline constexpr DType float64 = DType::kFloat64;
inline constexpr DType int32 = DType::kInt32;
inline constexpr DType int64 = DType::kInt64;
inline constexpr DType uint8 = DType::kUint8;
inline constexpr DType bool_ = DType::kBool;
inline constexpr DType resource = DType::kResource;
inline constexpr DType bfloat16 = DType::kBFloat16;
inline constexpr DType float16 = DType::kFloat16;
inline constexpr DType int8 = DType::kInt8;
inline constexpr DType complex64 = DType::kComplex64;
inline constexpr DType complex128 = DType::kComplex128;
inline constexpr DType string_ = DType::kString;
inline constexpr DType variant = DType::kVariant;
inline constexpr DType int16 = DType::kInt16;
inline constexpr DType uint16 = DType::kUint16;
inline constexpr DType uint32 = DType::kUint32;
inline constexpr DType uint64 = DType::kUint64;

// Returns the size of one element in bytes; 0 for invalid, resource, string,
// variant.
constexpr size_t size_of(DType dtype) {
  constexpr size_t kSizes[kNumDTypes] = {0, 4, 8,  4, 8, 1, 1, 0, 2, 2,
                                         1, 8, 16, 0, 0, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) {
  return dtype == float32 || dtype == float64 || dtype == bfloat16 ||
         dtype == float16;
}
constexpr bool is_unsigned(DType dtype) {
  return dtype == uint8 || dtype == uint16 || dtype == uint32 ||
         dtype == uint64;
}
constexpr bool is_integer(DType dtype) {
  return dtype == int32 || dtype == int64 || dtype == int8 || dtype == int16 ||
         is_unsigned(dtype);
}
constexpr bool is_complex(DType dtype) {
  return dtype == complex64 || dtype == complex128;
}

// Whether gradients flow through it.
constexpr bool is_inexact(DType dtype) {
  return is_floating(dtype) || is_complex(dtype);
}

// Returns TensorFlow's name, for example "float32".
const char* name_of(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);  // name_of

// Parses a name from `name_of`; kInvalid if unknown.
DType dtype_from_name(std::string_view name);

// Maps a C++ element type to its DType (kInvalid for others).
template <class T>
inline constexpr DType dtype_of = DType::kInvalid;
template <>
inline constexpr DType dtype_of<float> = float32;
template <>
inline constexpr DType dtype_of<double> = float64;
template <>
inline constexpr DType dtype_of<int32_t> = int32;
template <>
inline constexpr DType dtype_of<int64_t> = int64;
template <>
inline constexpr DType dtype_of<uint8_t> = uint8;
template <>
inline constexpr DType dtype_of<bool> = bool_;
template <>
inline constexpr DType dtype_of<bfloat16_t> = bfloat16;
template <>
inline constexpr DType dtype_of<float16_t> = float16;
template <>
inline constexpr DType dtype_of<int8_t> = int8;
template <>
inline constexpr DType dtype_of<int16_t> = int16;
template <>
inline constexpr DType dtype_of<uint16_t> = uint16;
template <>
inline constexpr DType dtype_of<uint32_t> = uint32;
template <>
inline constexpr DType dtype_of<uint64_t> = uint64;
template <>
inline constexpr DType dtype_of<std::complex<float>> = complex64;
template <>
inline constexpr DType dtype_of<std::complex<double>> = complex128;

}  // namespace berth

#endif  // BERTH_DTYPE_H_
