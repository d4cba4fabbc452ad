#include "backends/reference/convert.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tensor/visit_dtype.h"

namespace berth::reference {

namespace {

// Elements are converted through one of four types that hold every value of
// their kind, a block at a time: a few loops per type instead of one per pair.
constexpr int64_t kBlock = 512;

template <class T>
using Hub = std::conditional_t<
    is_complex_type<T>, std::complex<double>,
    std::conditional_t<
        std::is_same_v<T, uint64_t>, uint64_t,
        std::conditional_t<std::is_integral_v<T>, int64_t, double>>>;

template <class To>
To stored(double v) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    if (v != v) return 0;
    constexpr auto lo = std::numeric_limits<To>::min();
    constexpr auto hi = std::numeric_limits<To>::max();
    if (v <= static_cast<double>(lo)) return lo;
    if (v >= static_cast<double>(hi)) return hi;
  }
  return convert_element<To>(v);
}
template <class To>
To stored(int64_t v) {
  return convert_element<To>(v);
}
template <class To>
To stored(uint64_t v) {
  return convert_element<To>(v);
}
template <class To>
To stored(std::complex<double> v) {
  if constexpr (is_complex_type<To>) return convert_element<To>(v);
  return stored<To>(v.real());
}

template <class H>
void convert_through(const View& to, const View& from) {
  H block[kBlock];
  const int64_t n = from.size();
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    visit_dtype(from.dtype, "cast", [&]<class T>(T) {
      if constexpr (std::is_same_v<Hub<T>, H>) {
        const T* x = from.as<T>() + at;
        for (int64_t i = 0; i < count; ++i) block[i] = convert_element<H>(x[i]);
      }
    });
    visit_dtype(to.dtype, "cast", [&]<class T>(T) {
      T* y = to.as<T>() + at;
      for (int64_t i = 0; i < count; ++i) y[i] = stored<T>(block[i]);
    });
  }
}

}  // namespace

void convert_elements(const View& to, const View& from) {
  if (from.dtype == to.dtype) {
    const size_t bytes = static_cast<size_t>(from.size()) * size_of(to.dtype);
    if (bytes > 0) std::memcpy(to.data, from.data, bytes);
  } else if (is_complex(from.dtype)) {
    convert_through<std::complex<double>>(to, from);
  } else if (is_floating(from.dtype)) {
    convert_through<double>(to, from);
  } else if (from.dtype == uint64) {
    convert_through<uint64_t>(to, from);
  } else {
    convert_through<int64_t>(to, from);
  }
}

}  // namespace berth::reference
