#include <fmt/format.h>

#include <unordered_map>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

[[noreturn]] void too_many(const KernelCall& c, const char* what) {
  throw errors::InvalidArgument(
      fmt::format("{}: there are more {} than max_size, {}; expected a larger "
                  "max_size",
                  c.op->name(), what, c.out[0].dim(0)));
}

void where(const KernelCall& c) {
  const Shape& shape = *c.in[0].shape;
  const int rank = shape.rank();
  const auto strides = dense_strides(shape);
  const int64_t most = c.out[0].dim(0);
  auto* index = c.out[0].as<int64_t>();
  int64_t count = 0;
  set_zero(c.out[0]);
  with_any(c.in[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = c.in[0].as<T>();
    for (int64_t i = 0, n = c.in[0].size(); i < n; ++i) {
      if (x[i] == T{}) continue;
      if (count == most) too_many(c, "true elements");
      for (int d = 0; d < rank; ++d) {
        index[count * rank + d] = i / strides[d] % shape[d];
      }
      ++count;
    }
  });
  *c.out[1].as<int64_t>() = count;
}

void unique(const KernelCall& c) {
  const View &y = c.out[0], &idx = c.out[1], &size = c.out[c.num_out - 1];
  const View* counts = c.num_out == 4 ? &c.out[2] : nullptr;
  set_zero(y);
  if (counts) set_zero(*counts);
  with_number(c.in[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = c.in[0].as<T>();
    std::unordered_map<T, int64_t, std::hash<T>, std::equal_to<T>,
                       ScratchAllocator<std::pair<const T, int64_t>>>
        places;
    int64_t found = 0;
    for (int64_t i = 0, n = c.in[0].size(); i < n; ++i) {
      const auto [at, is_new] = places.try_emplace(x[i], found);
      if (is_new) {
        if (found == y.dim(0)) too_many(c, "different elements");
        y.as<T>()[found++] = x[i];
      }
      set_index(idx, i, at->second);
      if (counts) {
        set_index(*counts, at->second, index_at(*counts, at->second) + 1);
      }
    }
    *size.as<int64_t>() = found;
  });
}

}  // namespace

void add_dynamic(KernelTable& t) {
  t.direct("Where", kAllTypes, &where, "reference");
  t.direct("Unique", kNumberTypes, &unique, "reference");
  t.direct("UniqueWithCounts", kNumberTypes, &unique, "reference");
}

}  // namespace berth::reference
