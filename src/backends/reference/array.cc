#include <algorithm>
#include <cstring>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

void zeros(const KernelCall& c) {
  std::memset(c.out[0].data, 0,
              static_cast<size_t>(c.out[0].size()) * size_of(c.out[0].dtype));
}

void copy(const KernelCall& c) {
  const size_t bytes =
      static_cast<size_t>(c.out[0].size()) * size_of(c.out[0].dtype);
  if (bytes > 0) std::memcpy(c.out[0].data, c.in[0].data, bytes);
}

void ones(const KernelCall& c) {
  with_any(c.out[0].dtype, [&](auto type) {
    using T = decltype(type);
    std::fill_n(c.out[0].as<T>(), c.out[0].size(), T{1});
  });
}

void broadcast(const KernelCall& c) {
  with_any(c.in[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for_each_broadcast(*c.out[0].shape, *c.in[0].shape, *c.out[0].shape,
                       [&](int64_t i, int64_t from, int64_t) {
                         y[i] = x[from];
                       });
  });
}

}  // namespace

void add_array(KernelTable& t) {
  t.direct("ZerosLike", kAllTypes, &zeros, "reference");
  t.direct("OnesLike", kAllTypes, &ones, "reference");
  t.direct("DeepCopy", kAllTypes, &copy, "reference");
  t.direct("BroadcastTo", kAllTypes, &broadcast, "reference");
}

}  // namespace berth::reference
