// Ops whose result shape follows from values: Where, Unique.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

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
  with_any(c.in[0].dtype, [&]<class T>(T) {
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

// Where each element found so far stands in `y`: a table of places, open
// addressed and at most half full.
template <class T>
class PlacesOf {
 public:
  explicit PlacesOf(const T* y) : y_(y), slots_(size_t{1} << 10, kFree) {}

  // The place of x, or `next`, which it gets then; no NaN equals another.
  int64_t take(T x, int64_t next) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x)) return next;
    }
    size_t s = slot_of(x);
    for (; slots_[s] != kFree; s = (s + 1) & (slots_.size() - 1)) {
      if (y_[slots_[s]] == x) return slots_[s];
    }
    slots_[s] = next;
    if (++taken_ * 2 > slots_.size()) grow(next, x);
    return next;
  }

 private:
  static constexpr int64_t kFree = -1;

  size_t slot_of(T x) const {
    uint64_t bits = 0;
    if constexpr (std::is_floating_point_v<T>) {
      const T plain = x == T{} ? T{} : x;  // both zeros are one
      bits =
          std::bit_cast<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(
              plain);
    } else {
      bits = static_cast<uint64_t>(x);
    }
    bits *= 0x9E3779B97F4A7C15u;
    return (bits ^ bits >> 32) & (slots_.size() - 1);
  }

  // y_[next], which the caller has yet to write, is x.
  void grow(int64_t next, T x) {
    const Scratch<int64_t> old = std::exchange(
        slots_, Scratch<int64_t>(slots_.size() * 4, int64_t{kFree}));
    for (const int64_t place : old) {
      if (place == kFree) continue;
      size_t s = slot_of(place == next ? x : y_[place]);
      while (slots_[s] != kFree) s = (s + 1) & (slots_.size() - 1);
      slots_[s] = place;
    }
  }

  const T* y_;
  Scratch<int64_t> slots_;
  size_t taken_ = 0;
};

void unique(const KernelCall& c) {
  const View &y = c.out[0], &idx = c.out[1], &size = c.out[c.num_out - 1];
  const View* counts = c.num_out == 4 ? &c.out[2] : nullptr;
  set_zero(y);
  if (counts) set_zero(*counts);
  with_number(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    PlacesOf<T> places(y.as<T>());
    int64_t found = 0;
    for (int64_t i = 0, n = c.in[0].size(); i < n; ++i) {
      const int64_t at = places.take(x[i], found);
      if (at == found) {
        if (found == y.dim(0)) too_many(c, "different elements");
        y.as<T>()[found++] = x[i];
      }
      set_index(idx, i, at);
      if (counts) set_index(*counts, at, index_at(*counts, at) + 1);
    }
    *size.as<int64_t>() = found;
  });
}

}  // namespace

void add_dynamic(KernelTable& t) {
  t.direct("Where", kOwnNumbers | kBoolType, &where, "reference");
  t.direct("Unique", kOwnNumbers, &unique, "reference");
  t.direct("UniqueWithCounts", kOwnNumbers, &unique, "reference");
}

}  // namespace berth::reference
