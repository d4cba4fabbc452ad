// Sorting: indices of sorted rows, and the largest elements.
//
// An element becomes an unsigned number of the same order, with its index
// behind it, so that no two are equal. NaN is the largest; -0 equals 0.

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "backends/cpu/kernels.h"
#include "backends/reference/loops.h"
#include "backends/reference/scratch.h"

namespace berth::cpu {

namespace {

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
KeyOf<T> key_of(T x) {
  using Key = KeyOf<T>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~Key{0};
    const auto bits = std::bit_cast<Key>(x + T{0});  // -0 becomes 0
    return (bits & kTop) != 0 ? ~bits : bits | kTop;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(x) ^ kTop;
  } else {
    return x;
  }
}

// A 32-bit key and its index in one number, or both side by side.
struct Narrow {
  uint64_t both;
  Narrow() = default;
  Narrow(uint32_t key, int64_t place)
      : both(uint64_t{key} << 32 | static_cast<uint64_t>(place)) {}
  static constexpr int kBits = 32;
  uint32_t key() const { return static_cast<uint32_t>(both >> 32); }
  int32_t place() const { return static_cast<int32_t>(both); }
  bool operator<(const Narrow& o) const { return both < o.both; }
};
struct WideItem {
  uint64_t whole;
  int64_t at;
  WideItem() = default;
  WideItem(uint64_t key, int64_t place) : whole(key), at(place) {}
  static constexpr int kBits = 64;
  uint64_t key() const { return whole; }
  int32_t place() const { return static_cast<int32_t>(at); }
  bool operator<(const WideItem& o) const {
    return whole != o.whole ? whole < o.whole : at < o.at;
  }
};
template <class T>
using ItemOf = std::conditional_t<sizeof(T) == 8, WideItem, Narrow>;

constexpr int kDigit = 11;
constexpr int64_t kBuckets = int64_t{1} << kDigit;
// With fewer items, comparing is cheaper than counting.
constexpr int64_t kFewItems = 1500;

template <class Item>
int64_t digit_of(const Item& item, int pass) {
  return static_cast<int64_t>(item.key() >> (pass * kDigit)) & (kBuckets - 1);
}

// Sorts items, keeping the order of equal keys; returns where the result is:
// items or other.
template <class Item>
Item* radix_sort(Item* items, Item* other, int64_t n) {
  constexpr int kPasses = (Item::kBits + kDigit - 1) / kDigit;
  uint32_t counts[kPasses][kBuckets] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int p = 0; p < kPasses; ++p) ++counts[p][digit_of(items[i], p)];
  }
  for (int p = 0; p < kPasses; ++p) {
    uint32_t* count = counts[p];
    if (count[digit_of(items[0], p)] == n) continue;  // all have the same digit
    uint32_t sum = 0;
    for (int64_t b = 0; b < kBuckets; ++b) {
      const uint32_t here = count[b];
      count[b] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; ++i) {
      other[count[digit_of(items[i], p)]++] = items[i];
    }
    std::swap(items, other);
  }
  return items;
}

template <class T>
ItemOf<T> item_at(const T* x, int64_t i, bool down) {
  const KeyOf<T> key = key_of(x[i]);
  return {down ? static_cast<KeyOf<T>>(~key) : key, i};
}

// Returns the sorted items of x[n], in one of two arrays of n.
template <class T>
const ItemOf<T>* sort_row(const T* x, int64_t n, bool down, ItemOf<T>* items,
                          ItemOf<T>* other) {
  for (int64_t i = 0; i < n; ++i) items[i] = item_at(x, i, down);
  if (n >= kFewItems) return radix_sort(items, other, n);
  std::sort(items, items + n);
  return items;
}

// Returns the k largest of x[n], 0 < k <= n / 4, sorted. Candidates behind the
// k-th are dropped whenever space runs short.
template <class T>
const ItemOf<T>* top_row(const T* x, int64_t n, int64_t k, ItemOf<T>* items) {
  const int64_t room = std::min(n, 2 * k + 256);
  int64_t count = 0;
  ItemOf<T> worst(~KeyOf<T>{0}, INT32_MAX);
  for (int64_t i = 0; i < n; ++i) {
    const ItemOf<T> item = item_at(x, i, true);
    if (!(item < worst)) continue;
    items[count++] = item;
    if (count < room) continue;
    std::nth_element(items, items + k - 1, items + count);
    worst = items[k - 1];
    count = k;
  }
  std::nth_element(items, items + k - 1, items + count);
  std::sort(items, items + k);
  return items;
}

struct SortRows {
  int64_t count = 1, length;
  explicit SortRows(const View& v) : length(v.dim(v.shape->rank() - 1)) {
    for (int i = 0; i + 1 < v.shape->rank(); ++i) count *= v.dim(i);
  }
};

void arg_sort(const KernelCall& c) {
  const SortRows rows(c.in[0]);
  if (rows.count * rows.length == 0) return;
  const bool down = c.attr<bool>("descending");
  reference::with_number(c.in[0].dtype, [&](auto type) {
    using T = decltype(type);
    const int64_t n = rows.length;
    const reference::ScratchArray<ItemOf<T>> items(n), other(n);
    const T* x = c.in[0].as<T>();
    auto* places = c.out[0].as<int32_t>();
    for (int64_t r = 0; r < rows.count; ++r, x += n) {
      const auto* sorted = sort_row(x, n, down, items.get(), other.get());
      for (int64_t i = 0; i < n; ++i) *places++ = sorted[i].place();
    }
  });
}

void top_k(const KernelCall& c) {
  const SortRows rows(c.in[0]);
  const int64_t n = rows.length, k = SortRows(c.out[0]).length;
  if (rows.count * n * k == 0) return;
  reference::with_number(c.in[0].dtype, [&](auto type) {
    using T = decltype(type);
    const reference::ScratchArray<ItemOf<T>> items(n), other(n);
    const T* x = c.in[0].as<T>();
    T* values = c.out[0].as<T>();
    auto* places = c.out[1].as<int32_t>();
    for (int64_t r = 0; r < rows.count; ++r, x += n) {
      const auto* top = k <= n / 4
                            ? top_row(x, n, k, items.get())
                            : sort_row(x, n, true, items.get(), other.get());
      for (int64_t i = 0; i < k; ++i) {
        *places++ = top[i].place();
        *values++ = x[top[i].place()];
      }
    }
  });
}

}  // namespace

void add_sort(KernelTable& t) {
  t.direct("TopKV2", kNumberTypes, &top_k, "loops");
  t.direct("ArgSort", kNumberTypes, &arg_sort, "loops");
}

}  // namespace berth::cpu
