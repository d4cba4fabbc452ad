// Sorting: sorted rows, indices of sorted rows, and the largest elements.
//
// Rows are sorted in vectors (isa/sort.h) where the processor can, else by
// radix: an element becomes an unsigned number of the same order. For indices
// it gets its index after it, so that no two are equal. NaN is the largest; -0
// equals 0.

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "backends/cpu/function_loops.h"
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
  static constexpr uint64_t kTop = uint64_t{1} << 63;
  int64_t both;
  Narrow() = default;
  Narrow(uint32_t key, int64_t place)
      : both(static_cast<int64_t>(
            (uint64_t{key} << 32 | static_cast<uint64_t>(place)) ^ kTop)) {}
  uint32_t key() const {
    return static_cast<uint32_t>((static_cast<uint64_t>(both) ^ kTop) >> 32);
  }
  int32_t place() const { return static_cast<int32_t>(both); }
  bool operator<(const Narrow& o) const { return both < o.both; }
};
struct WideItem {
  uint64_t whole;
  int64_t at;
  WideItem() = default;
  WideItem(uint64_t key, int64_t place) : whole(key), at(place) {}
  uint64_t key() const { return whole; }
  int32_t place() const { return static_cast<int32_t>(at); }
  bool operator<(const WideItem& o) const {
    return whole != o.whole ? whole < o.whole : at < o.at;
  }
};
template <class T>
using ItemOf = std::conditional_t<sizeof(T) == 8, WideItem, Narrow>;

// The radix sort counts by 8 bits in shorter rows, by 11 bits from here on.
constexpr int64_t kLongRow = 16384;
// With fewer items, comparing is cheaper than counting.
constexpr int64_t kFewItems = 96;

// Sorts items, keeping the order of equal keys; returns where the result is:
// items or other.
template <int kDigit, class Item>
Item* radix_sort(Item* items, Item* other, int64_t n) {
  constexpr uint32_t kBuckets = 1U << kDigit;
  constexpr int kBits = 8 * sizeof(Item{}.key());
  constexpr int kPasses = (kBits + kDigit - 1) / kDigit;
  const auto digit_of = [](const Item& item, int pass) {
    return static_cast<uint32_t>(item.key() >> (pass * kDigit)) &
           (kBuckets - 1);
  };
  uint32_t counts[kPasses][kBuckets] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int p = 0; p < kPasses; ++p) ++counts[p][digit_of(items[i], p)];
  }
  for (int p = 0; p < kPasses; ++p) {
    uint32_t* count = counts[p];
    if (count[digit_of(items[0], p)] == n) continue;  // all have the same digit
    uint32_t sum = 0;
    for (uint32_t b = 0; b < kBuckets; ++b) {
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

// More splits than a row of n takes, but for rows made to be slow.
int splits_of(int64_t n) {
  return 4 + 2 * static_cast<int>(std::bit_width(static_cast<uint64_t>(n)));
}

// `varying` has the bits of keys that are not the same in all items.
template <class Item, class Key>
Item* sort_items(Item* items, Item* other, int64_t n, Key varying) {
  if constexpr (std::is_same_v<Item, Narrow>) {
    // Items of one digit are counted faster.
    const auto sort = function_loops().sort.int64;
    const bool one_digit = (varying >> 11) == 0;
    if (sort != nullptr && (n < kLongRow || !one_digit)) {
      sort(&items->both, &items->both, n, splits_of(n));
      return items;
    }
  }
  if (n >= kLongRow) return radix_sort<11>(items, other, n);
  if (n >= kFewItems) return radix_sort<8>(items, other, n);
  std::sort(items, items + n);
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
  KeyOf<T> varying = 0;
  const KeyOf<T> first = item_at(x, 0, down).key();
  for (int64_t i = 0; i < n; ++i) {
    items[i] = item_at(x, i, down);
    varying |= items[i].key() ^ first;
  }
  return sort_items(items, other, n, varying);
}

template <class T>
T value_of(KeyOf<T> key) {
  using Key = KeyOf<T>;
  constexpr Key kTop = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>((key & kTop) != 0 ? key ^ kTop : ~key);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(key ^ kTop);
  } else {
    return static_cast<T>(key);
  }
}

// Keys lose the sign of zeros and the bits of NaNs: those of x[n] take their
// places in y, in their order.
template <class T>
void put_back_zeros_and_nans(const T* x, int64_t n, bool down, T* y) {
  const auto before = [down](T a, T b) { return down ? a > b : a < b; };
  int64_t nans = 0;
  for (int64_t i = 0; i < n; ++i) nans += x[i] != x[i];
  int64_t nan = down ? 0 : n - nans;
  T* const first = y + (down ? nans : 0);
  T* zero = std::lower_bound(first, first + (n - nans), T{0}, before);
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == T{0}) *zero++ = x[i];
    if (x[i] != x[i]) y[nan++] = x[i];
  }
}

// Returns false where the processor has no loop for this type.
template <class T>
bool sort_in_vectors(const T* x, int64_t n, bool down, T* y) {
  const SortLoops& loops = function_loops().sort;
  bool (*sort)(const T*, T*, int64_t, int) = nullptr;
  if constexpr (std::is_same_v<T, float>) sort = loops.float32;
  if constexpr (std::is_same_v<T, double>) sort = loops.float64;
  if constexpr (std::is_same_v<T, int32_t>) sort = loops.int32;
  if constexpr (std::is_same_v<T, int64_t>) sort = loops.int64;
  if (sort == nullptr) return false;
  const bool ordinary = sort(x, y, n, splits_of(n));
  if (!ordinary) {  // infinities and zeros stand in for NaNs and -0
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      y[i] = x[i] != x[i] ? kInfinity : x[i] + T{0};
    }
    sort(y, y, n, splits_of(n));
  }
  if (down) std::reverse(y, y + n);
  if constexpr (std::is_floating_point_v<T>) {
    if (!ordinary) put_back_zeros_and_nans(x, n, down, y);
  }
  return true;
}

// key_of() where there is neither NaN nor -0.
template <class T>
KeyOf<T> plain_key_of(T x) {
  using Key = KeyOf<T>;
  constexpr int kSign = 8 * sizeof(Key) - 1;
  if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<Key>(x);
    return bits ^ ((Key{0} - (bits >> kSign)) | Key{1} << kSign);
  } else {
    return key_of(x);
  }
}

// What a look at all elements of a row tells.
template <class Key>
struct RowBits {
  Key varying = 0;   // bits of keys that may differ; the others are the same
  bool odd = false;  // there is a NaN or -0
};

template <class T>
RowBits<KeyOf<T>> look_at(const T* x, int64_t n) {
  using Key = KeyOf<T>;
  using Word = std::conditional_t<std::is_floating_point_v<T>, Key, T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const auto bits_of = [](T v) {
    return static_cast<Key>(std::bit_cast<Word>(v));
  };
  const Key first = bits_of(x[0]);
  Key varying = 0;
  for (int64_t i = 0; i < n; ++i) varying |= bits_of(x[i]) ^ first;
  if constexpr (!std::is_floating_point_v<T>) return {varying, false};
  constexpr Key kInf = bits_of(std::numeric_limits<T>::infinity());
  Key odd = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key bits = bits_of(x[i]);
    odd |= static_cast<Key>((bits & ~kSign) > kInf) |
           static_cast<Key>(bits == kSign);
  }
  // Keys of numbers below zero are turned around.
  return {odd || (varying & kSign) ? ~Key{0} : varying, odd != 0};
}

// Where the elements of each digit begin, for kPasses digits at their shifts.
template <int kPasses, class Keys, size_t kBuckets>
void count_digits(const Keys& key_at, int64_t n, const int* shifts,
                  uint32_t (*counts)[kBuckets]) {
  for (int64_t i = 0; i < n; ++i) {
    const auto key = key_at(i);
    for (int p = 0; p < kPasses; ++p) {
      ++counts[p][(key >> shifts[p]) & (kBuckets - 1)];
    }
  }
  for (int p = 0; p < kPasses; ++p) {
    uint32_t sum = 0;
    for (uint32_t& c : std::span(counts[p], kBuckets)) {
      sum += std::exchange(c, sum);
    }
  }
}

// One pass of the radix sort; `from` gives keys, `to` takes them.
template <size_t kBuckets, class From, class To>
void scatter(int64_t n, int shift, uint32_t* begin, From from, To to) {
  for (int64_t i = 0; i < n; ++i) {
    const auto key = from(i);
    to(begin[(key >> shift) & (kBuckets - 1)]++, key);
  }
}

// Counts only digits that vary; the first pass reads x, the last writes y.
template <int kDigit, class T, class Keys>
void radix_values(const T* x, int64_t n, const Keys& key_at, KeyOf<T> flip,
                  KeyOf<T> varying, KeyOf<T>* a, KeyOf<T>* b, T* y) {
  using Key = KeyOf<T>;
  constexpr size_t kBuckets = size_t{1} << kDigit;
  constexpr int kMost = (8 * sizeof(Key) + kDigit - 1) / kDigit;
  uint32_t counts[kMost][kBuckets] = {};
  int shifts[kMost], passes = 0;
  for (int p = 0; p < kMost; ++p) {
    if ((varying >> (p * kDigit)) & (kBuckets - 1)) {
      shifts[passes++] = p * kDigit;
    }
  }
  if (passes == 0) {
    std::copy_n(x, n, y);
    return;
  }
  for (int p = 0; p < passes; p += 3) {  // three at a time
    const int more = std::min(3, passes - p);
    const auto count = more == 1   ? &count_digits<1, Keys, kBuckets>
                       : more == 2 ? &count_digits<2, Keys, kBuckets>
                                   : &count_digits<3, Keys, kBuckets>;
    count(key_at, n, shifts + p, counts + p);
  }
  for (int p = 0; p < passes; ++p, std::swap(a, b)) {
    const auto from_a = [=](int64_t i) { return a[i]; };
    const auto to_b = [=](uint32_t at, Key key) { b[at] = key; };
    const auto to_y = [=](uint32_t at, Key key) {
      y[at] = value_of<T>(key ^ flip);
    };
    const auto pass = [&](auto from, auto to) {
      scatter<kBuckets>(n, shifts[p], counts[p], from, to);
    };
    const bool last = p + 1 == passes;
    if (p == 0) {
      last ? pass(key_at, to_y) : pass(key_at, to_b);
    } else {
      last ? pass(from_a, to_y) : pass(from_a, to_b);
    }
  }
}

template <class T>
void sort_values(const T* x, int64_t n, bool down, KeyOf<T>* keys,
                 KeyOf<T>* other, T* y) {
  using Key = KeyOf<T>;
  const Key flip = down ? ~Key{0} : Key{0};
  const RowBits<Key> bits = look_at(x, n);
  const auto sort_by = [&](const auto& key_at) {
    if (n >= kLongRow) {
      radix_values<11>(x, n, key_at, flip, bits.varying, keys, other, y);
    } else if (n >= kFewItems) {
      radix_values<8>(x, n, key_at, flip, bits.varying, keys, other, y);
    } else {
      for (int64_t i = 0; i < n; ++i) keys[i] = key_at(i);
      std::sort(keys, keys + n);
      for (int64_t i = 0; i < n; ++i) y[i] = value_of<T>(keys[i] ^ flip);
    }
  };
  if (bits.odd) {
    sort_by([=](int64_t i) { return key_of(x[i]) ^ flip; });
  } else {
    sort_by([=](int64_t i) { return plain_key_of(x[i]) ^ flip; });
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (bits.odd) put_back_zeros_and_nans(x, n, down, y);
  }
}

// Returns the k largest of x[n], 0 < k <= n / 4, sorted. Candidates after the
// k-th are dropped whenever space runs short.
template <class T>
const ItemOf<T>* top_row(const T* x, int64_t n, int64_t k, ItemOf<T>* items) {
  const int64_t room = std::min(n, 2 * k + 32);
  int64_t count = 0;
  const T* worst = nullptr;  // the k-th largest so far
  for (int64_t i = 0; i < n; ++i) {
    if (worst != nullptr && x[i] <= *worst) continue;  // true of no NaN
    items[count++] = item_at(x, i, true);
    if (count < room) continue;
    std::nth_element(items, items + k - 1, items + count);
    worst = x + items[k - 1].place();
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
  reference::with_number(c.in[0].dtype, [&]<class T>(T) {
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

void sort_rows(const KernelCall& c) {
  const SortRows rows(c.in[0]);
  if (rows.count * rows.length == 0) return;
  const bool down = c.attr<bool>("descending");
  reference::with_number(c.in[0].dtype, [&]<class T>(T) {
    const int64_t n = rows.length;
    const reference::ScratchArray<KeyOf<T>> keys(n), other(n);
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for (int64_t r = 0; r < rows.count; ++r, x += n, y += n) {
      if (sort_in_vectors(x, n, down, y)) continue;
      sort_values(x, n, down, keys.get(), other.get(), y);
    }
  });
}

void top_k(const KernelCall& c) {
  const SortRows rows(c.in[0]);
  const int64_t n = rows.length, k = SortRows(c.out[0]).length;
  if (rows.count * n * k == 0) return;
  reference::with_number(c.in[0].dtype, [&]<class T>(T) {
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
  t.direct("Sort", kNumberTypes, &sort_rows, "loops");
}

}  // namespace berth::cpu
