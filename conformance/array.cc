#include "conformance/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/visit_dtype.h"

namespace berth::conformance {

namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xB7};
constexpr std::byte kGarbage{0xA9};

// Calls fn(T{}) with the type of the parts of `dtype`.
template <class Fn>
auto with_type(DType dtype, Fn&& fn) {
  // For a bool any bit pattern must be readable.
  return visit_dtype(dtype == bool_ ? uint8 : dtype, "conformance",
                     [&](auto type) {
                       if constexpr (is_complex_type<decltype(type)>) {
                         return fn(type.real());
                       } else {
                         return fn(type);
                       }
                     });
}

template <class T>
T saturate(double v) {
  if constexpr (std::is_integral_v<T>) {
    if (v != v) return 0;
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return convert_element<T>(v);
}

// Elements before the axis, and bytes of one step along it.
struct Strides {
  Strides(const Array& a, int axis) {
    for (int i = 0; i < axis; ++i) outer *= a.shape()[i];
    step_bytes = static_cast<int64_t>(size_of(a.dtype()));
    for (int i = axis + 1; i < a.shape().rank(); ++i) {
      step_bytes *= a.shape()[i];
    }
  }
  int64_t outer = 1;
  int64_t step_bytes = 1;
};

}  // namespace

Array::Array(DType dtype, const Shape& shape) : dtype_(dtype), shape_(shape) {
  const size_t n = size_bytes();
  bytes_.assign(n + 2 * kGuardBytes + 64, kGuard);
  const auto address = reinterpret_cast<uintptr_t>(bytes_.data());
  offset_ = (address + kGuardBytes + 63) / 64 * 64 - address;
  std::fill_n(data(), n, kGarbage);
}

void Array::copy_bytes(const Array& o) {
  if (o.size_bytes() > 0) std::memcpy(data(), o.data(), o.size_bytes());
}

double Array::at(int64_t i) const {
  return with_type(dtype_, [&](auto type) {
    using T = decltype(type);
    return convert_element<double>(reinterpret_cast<const T*>(data())[i]);
  });
}

void Array::set(int64_t i, double value) {
  with_type(dtype_, [&](auto type) {
    using T = decltype(type);
    reinterpret_cast<T*>(data())[i] =
        saturate<T>(dtype_ == bool_ ? (value != 0 ? 1 : 0) : value);
  });
}

bool Array::guards_intact() const {
  const auto is_guard = [](std::byte b) { return b == kGuard; };
  return std::all_of(bytes_.begin(),
                     bytes_.begin() + static_cast<ptrdiff_t>(offset_),
                     is_guard) &&
         std::all_of(
             bytes_.begin() + static_cast<ptrdiff_t>(offset_ + size_bytes()),
             bytes_.end(), is_guard);
}

Array Array::converted(DType dtype) const {
  Array out(dtype, shape_);
  if (dtype == dtype_) {
    out.copy_bytes(*this);
    return out;
  }
  const bool same_parts = is_complex(dtype) == is_complex(dtype_);
  const int step = same_parts ? 1 : 2;  // a real number as a complex one
  for (int64_t i = 0; i < out.parts(); ++i) out.set(i, 0);
  for (int64_t i = 0; i < parts(); ++i) out.set(i * step, at(i));
  return out;
}

namespace {

bool same_kind(DType got, DType want) {
  return got == want || (is_floating(got) && want == float64) ||
         (got == complex64 && want == complex128);
}

// `v` as `dtype` would hold it.
double rounded_to(DType dtype, double v) {
  return with_type(dtype, [&](auto type) {
    return convert_element<double>(saturate<decltype(type)>(v));
  });
}

std::string position(const Shape& shape, int64_t i) {
  std::string s;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    s = fmt::format("{}{}{}", i % shape[axis], s.empty() ? "" : ",", s);
    i /= shape[axis];
  }
  return "[" + s + "]";
}

bool close(double got, double want, double scale, Tolerance t) {
  if (want != want) return got != got;
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= t.atol + t.rtol * scale;
}

}  // namespace

std::string difference(const Array& got, const Array& want, Tolerance t) {
  if (!same_kind(got.dtype(), want.dtype()) || got.shape() != want.shape()) {
    return fmt::format("got {}{}, want {}{}", name_of(got.dtype()),
                       got.shape().str(), name_of(want.dtype()),
                       want.shape().str());
  }
  int64_t count = 0;
  std::string first;
  const bool whole = !is_inexact(got.dtype());
  const int64_t step = is_complex(got.dtype()) ? 2 : 1;
  const auto bytes = static_cast<int64_t>(size_of(got.dtype()));
  for (int64_t i = 0; i < got.parts(); ++i) {
    const double w = whole ? want.at(i) : rounded_to(got.dtype(), want.at(i));
    double scale = std::fabs(w);
    if (step == 2) {
      const int64_t re = i - i % 2;
      const double modulus = std::hypot(want.at(re), want.at(re + 1));
      if (std::isfinite(modulus)) scale = modulus;
    }
    const bool ok =
        whole ? std::memcmp(got.data() + i * bytes, want.data() + i * bytes,
                            static_cast<size_t>(bytes)) == 0
              : close(got.at(i), w, scale, t);
    if (ok) continue;
    if (count++ == 0) {
      first = fmt::format("element {}{} is {:.9g}, want {:.9g}",
                          position(got.shape(), i / step),
                          step == 1 ? "" : (i % 2 ? ".imag" : ".real"),
                          got.at(i), w);
    }
  }
  if (count == 0) return "";
  return fmt::format("{} of {} numbers of {}{} differ; {} (rtol {}, atol {})",
                     count, got.parts(), name_of(got.dtype()),
                     got.shape().str(), first, t.rtol, t.atol);
}

Array cut(const Array& whole, int axis, int64_t begin, int64_t end) {
  Shape shape = whole.shape();
  const int64_t dim = shape[axis];
  shape[axis] = end - begin;
  Array part(whole.dtype(), shape);
  const Strides s(whole, axis);
  const int64_t n = (end - begin) * s.step_bytes;
  for (int64_t o = 0; o < s.outer && n > 0; ++o) {
    std::memcpy(part.data() + o * n,
                whole.data() + (o * dim + begin) * s.step_bytes,
                static_cast<size_t>(n));
  }
  return part;
}

void paste(Array* whole, const Array& part, int axis, int64_t begin) {
  const Strides s(*whole, axis);
  const int64_t dim = whole->shape()[axis];
  const int64_t n = part.shape()[axis] * s.step_bytes;
  for (int64_t o = 0; o < s.outer && n > 0; ++o) {
    std::memcpy(whole->data() + (o * dim + begin) * s.step_bytes,
                part.data() + o * n, static_cast<size_t>(n));
  }
}

}  // namespace berth::conformance
