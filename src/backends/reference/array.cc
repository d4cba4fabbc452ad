// Constants, copies, broadcasts and their sums.

#include <algorithm>
#include <cstring>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

void set_zero(const View& v) {
  const size_t bytes = static_cast<size_t>(v.size()) * size_of(v.dtype);
  if (bytes > 0) std::memset(v.data, 0, bytes);
}

int64_t product_of(const Shape& shape, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; ++i) n *= shape[i];
  return n;
}

namespace {

void set_all(const View& v, double value) {
  visit_dtype(v.dtype, "fill", [&]<class T>(T) {
    std::fill_n(v.as<T>(), v.size(), convert_element<T>(value));
  });
}

void zeros(const KernelCall& c) { set_zero(c.out[0]); }

void fill(const KernelCall& c) { set_all(c.out[0], c.attr<double>("value")); }

void range(const KernelCall& c) {
  // Unsigned: the product may wrap even if the sum fits.
  const auto start = static_cast<uint64_t>(c.attr<int64_t>("start"));
  const auto delta = static_cast<uint64_t>(c.attr<int64_t>("delta"));
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  with_number(c.out[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) {
      const uint64_t at = origin + static_cast<uint64_t>(i);
      y[i] = static_cast<T>(static_cast<int64_t>(start + at * delta));
    }
  });
}

void copy(const KernelCall& c) {
  const size_t bytes =
      static_cast<size_t>(c.out[0].size()) * size_of(c.out[0].dtype);
  if (bytes > 0) std::memcpy(c.out[0].data, c.in[0].data, bytes);
}

void ones(const KernelCall& c) { set_all(c.out[0], 1); }

void broadcast(const KernelCall& c) {
  with_storage(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for_each_broadcast(
        *c.out[0].shape, *c.in[0].shape, *c.out[0].shape,
        [&](int64_t i, int64_t from, int64_t) { y[i] = x[from]; });
  });
}

void sum_like(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    Scratch<Wide<T>> sums(static_cast<size_t>(c.out[0].size()));
    for_each_broadcast(*c.in[0].shape, *c.in[0].shape, *c.out[0].shape,
                       [&](int64_t i, int64_t, int64_t o) {
                         sums[o] += static_cast<Wide<T>>(x[i]);
                       });
    T* y = c.out[0].as<T>();
    for (size_t o = 0; o < sums.size(); ++o) y[o] = static_cast<T>(sums[o]);
  });
}

void size_ratio(const KernelCall& c) {
  const double ratio =
      static_cast<double>(c.in[0].size()) / static_cast<double>(c.in[1].size());
  with_inexact(c.out[0].dtype,
               [&]<class T>(T) { *c.out[0].as<T>() = static_cast<T>(ratio); });
}

}  // namespace

void add_array(KernelTable& t) {
  t.direct("Fill", kEveryType, &fill, "reference");
  t.direct("Range", kOwnNumbers, &range, "reference");
  t.direct("ZerosLike", kEveryType, &zeros, "reference");
  t.direct("OnesLike", kEveryType, &ones, "reference");
  t.direct("DeepCopy", kEveryType, &copy, "reference");
  t.direct("BroadcastTo", kEveryType, &broadcast, "reference");
  t.direct("BroadcastLike", kEveryType, &broadcast, "reference");
  t.direct("SumLike", kRingTypes, &sum_like, "reference");
  t.direct("SizeRatio", kRootTypes, &size_ratio, "reference");
}

}  // namespace berth::reference
