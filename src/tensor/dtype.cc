// Names and sizes of dtypes.

#include "berth/dtype.h"

#include <ostream>

namespace berth {

namespace {
constexpr const char* kNames[kNumDTypes] = {
    "invalid", "float32",   "float64",    "int32",    "int64",
    "uint8",   "bool",      "resource",   "bfloat16", "float16",
    "int8",    "complex64", "complex128", "string",   "variant",
    "int16",   "uint16",    "uint32",     "uint64"};
}  // namespace

const char* name_of(DType dtype) {
  const int i = static_cast<int>(dtype);
  return i >= 0 && i < kNumDTypes ? kNames[i] : "invalid";
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << name_of(dtype);
}

DType dtype_from_name(std::string_view name) {
  for (int i = 1; i < kNumDTypes; ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  return DType::kInvalid;
}

}  // namespace berth
