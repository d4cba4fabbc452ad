// Sorting of numbers in vectors; included once per instruction set, and empty
// for those that cannot permute lanes by a variable.
//
// Quicksort: rows are split at a pivot a vector at a time, and few numbers are
// sorted by bitonic networks (Batcher 1968). Equal numbers cannot be told
// apart, so the result depends on the numbers alone; of floats, this holds
// where there is neither NaN nor -0.

#ifndef BERTH_BACKENDS_CPU_ISA_SORT_H_
#define BERTH_BACKENDS_CPU_ISA_SORT_H_

#include "backends/cpu/function_loops.h"
#include "backends/cpu/isa/arch.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

#if defined(__AVX2__)

// Vectors of T: float, double, int32 or int64.
template <class T>
struct SortVector {
  static constexpr int kBytes = 4 * kLanes;
  static constexpr int kCount = kBytes / static_cast<int>(sizeof(T));
  // As many vectors as the registers hold.
  static constexpr int kMostVectors = kLanes;
  static constexpr int kFew = kCount * kMostVectors;
  static constexpr T kLargest = T(0.5) != T(0)
                                    ? T(__builtin_inf())
                                    : T(~(uint64_t{1} << (8 * sizeof(T) - 1)));
  typedef T V __attribute__((vector_size(kBytes)));
  typedef T Loose
      __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));

  BERTH_INLINE V set(T x) { return x - V{}; }
  BERTH_INLINE V load(const T* p) { return *reinterpret_cast<const Loose*>(p); }
  BERTH_INLINE void store(T* p, V v) { *reinterpret_cast<Loose*>(p) = v; }
  // The first n lanes, n <= kCount; the others become kLargest.
  BERTH_INLINE V load(const T* p, int64_t n) {
    if (n >= kCount) return load(p);
    T lanes[kCount];
    store(lanes, set(kLargest));
    __builtin_memcpy(lanes, p, static_cast<size_t>(n) * sizeof(T));
    return load(lanes);
  }
  BERTH_INLINE void store(T* p, V v, int64_t n) {
    if (n >= kCount) return store(p, v);
    T lanes[kCount];
    store(lanes, v);
    __builtin_memcpy(p, lanes, static_cast<size_t>(n) * sizeof(T));
  }
  // The compiler finds the instructions for whole numbers only.
  BERTH_INLINE V min(V a, V b) {
    if constexpr (T(0.5) == T(0)) return a < b ? a : b;
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      return (V)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
    } else {
      return (V)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
    }
#else
    if constexpr (sizeof(T) == 4) {
      return (V)_mm256_min_ps((__m256)a, (__m256)b);
    } else {
      return (V)_mm256_min_pd((__m256d)a, (__m256d)b);
    }
#endif
  }
  BERTH_INLINE V max(V a, V b) {
    if constexpr (T(0.5) == T(0)) return a < b ? b : a;
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
      return (V)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
    } else {
      return (V)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
    }
#else
    if constexpr (sizeof(T) == 4) {
      return (V)_mm256_max_ps((__m256)a, (__m256)b);
    } else {
      return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
    }
#endif
  }
};

// Lane i of the result is lane i ^ kPartner of v.
template <int kPartner, class V, int... kLane>
BERTH_INLINE V partners(V v, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(v, v, (kLane ^ kPartner)...);
}

// Lane i of low, or of high where i has the bit kBit.
template <int kBit, class V, int... kLane>
BERTH_INLINE V choose(V low, V high, std::integer_sequence<int, kLane...>) {
  constexpr int kCount = sizeof...(kLane);
  return __builtin_shufflevector(
      low, high, ((kLane & kBit) != 0 ? kLane + kCount : kLane)...);
}

constexpr int highest_bit(int x) {
  int bit = 1;
  while (2 * bit <= x) bit *= 2;
  return bit;
}

// Orders each lane i and its partner i ^ kPartner.
template <int kPartner, class T>
BERTH_INLINE auto ordered(typename SortVector<T>::V v) {
  using S = SortVector<T>;
  constexpr std::make_integer_sequence<int, S::kCount> kAll;
  const auto other = partners<kPartner>(v, kAll);
  return choose<highest_bit(kPartner)>(S::min(v, other), S::max(v, other),
                                       kAll);
}

// Sorts runs of 2 kDistance lanes that are bitonic.
template <int kDistance, class T>
BERTH_INLINE auto merged_lanes(typename SortVector<T>::V v) {
  if constexpr (kDistance == 0) {
    return v;
  } else {
    return merged_lanes<kDistance / 2, T>(ordered<kDistance, T>(v));
  }
}

// Sorts the lanes of v; runs of kWidth / 2 lanes are sorted.
template <class T, int kWidth = 2>
BERTH_INLINE auto sorted_lanes(typename SortVector<T>::V v) {
  if constexpr (kWidth > SortVector<T>::kCount) {
    return v;
  } else {
    return sorted_lanes<T, 2 * kWidth>(
        merged_lanes<kWidth / 4, T>(ordered<kWidth - 1, T>(v)));
  }
}

// Merges v[0, kSize / 2) and v[kSize / 2, kSize), which are sorted.
template <int kSize, class T>
BERTH_INLINE void merge(typename SortVector<T>::V* v) {
  using S = SortVector<T>;
  constexpr std::make_integer_sequence<int, S::kCount> kAll;
  typename S::V high[kSize / 2];
#pragma GCC unroll 16
  for (int i = 0; i < kSize / 2; ++i) {
    const auto other = partners<S::kCount - 1>(v[kSize - 1 - i], kAll);
    high[i] = S::max(v[i], other);
    v[i] = S::min(v[i], other);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSize / 2; ++i) v[kSize / 2 + i] = high[i];
#pragma GCC unroll 4
  for (int distance = kSize / 4; distance > 0; distance /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < kSize; ++i) {
      if ((i & distance) != 0) continue;
      const auto a = v[i], b = v[i + distance];
      v[i] = S::min(a, b);
      v[i + distance] = S::max(a, b);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSize; ++i) {
    v[i] = merged_lanes<S::kCount / 2, T>(v[i]);
  }
}

template <int kVectors, int kSize, class T>
BERTH_INLINE void merge_all(typename SortVector<T>::V* v) {
  if constexpr (kSize <= kVectors) {
#pragma GCC unroll 16
    for (int i = 0; i < kVectors; i += kSize) merge<kSize, T>(v + i);
    merge_all<kVectors, 2 * kSize, T>(v);
  }
}

// Sorts x[n], n <= kVectors vectors.
template <int kVectors, class T>
[[gnu::noinline]] void sort_vectors(T* x, int64_t n) {
  using S = SortVector<T>;
  typename S::V v[kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) {
    const int64_t rest = n - i * S::kCount;
    v[i] = rest > 0 ? S::load(x + i * S::kCount, rest) : S::set(S::kLargest);
    v[i] = sorted_lanes<T>(v[i]);
  }
  merge_all<kVectors, 2, T>(v);
#pragma GCC unroll 16
  for (int i = 0; i < kVectors; ++i) {
    const int64_t rest = n - i * S::kCount;
    if (rest > 0) S::store(x + i * S::kCount, v[i], rest);
  }
}

// Sorts x[n], n <= kFew.
template <class T>
void sort_few(T* x, int64_t n) {
  using S = SortVector<T>;
  if (n <= S::kCount) return sort_vectors<1>(x, n);
  if (n <= 2 * S::kCount) return sort_vectors<2>(x, n);
  if (n <= 4 * S::kCount) return sort_vectors<4>(x, n);
  if (n <= 8 * S::kCount) return sort_vectors<8>(x, n);
  if constexpr (S::kMostVectors > 8) sort_vectors<16>(x, n);
}

#if !defined(__AVX512F__)
// Rows of lane numbers for permutations of 32-bit lanes: row m has the lanes
// whose bit is set in m first, then the others.
template <int kCount>
struct LaneOrders {
  int32_t row[1 << kCount][8];
  constexpr LaneOrders() : row() {
    constexpr int kWords = 8 / kCount;
    for (int m = 0; m < 1 << kCount; ++m) {
      int at = 0;
      for (const int wanted : {1, 0}) {
        for (int lane = 0; lane < kCount; ++lane) {
          if (((m >> lane) & 1) != wanted) continue;
          for (int w = 0; w < kWords; ++w) row[m][at++] = kWords * lane + w;
        }
      }
    }
  }
};
#endif

// Moves the lanes of v for which `first` has a bit to `left` and on, the others
// to before `right`. Writes a whole vector at each. Returns how many went left.
template <class T>
BERTH_INLINE int64_t split_vector(typename SortVector<T>::V v, uint32_t first,
                                  T* left, T* right) {
  using S = SortVector<T>;
  const int64_t count = __builtin_popcount(first);
#if defined(__AVX512F__)
  const auto all = (__m512i)v;
  if constexpr (sizeof(T) == 4) {
    const auto m = static_cast<__mmask16>(first);
    const auto n = static_cast<__mmask16>(~first);
    S::store(left, (typename S::V)_mm512_maskz_compress_epi32(m, all));
    _mm512_mask_storeu_epi32(right - (16 - count),
                             static_cast<__mmask16>(0xffffu >> count),
                             _mm512_maskz_compress_epi32(n, all));
  } else {
    const auto m = static_cast<__mmask8>(first);
    const auto n = static_cast<__mmask8>(~first);
    S::store(left, (typename S::V)_mm512_maskz_compress_epi64(m, all));
    _mm512_mask_storeu_epi64(right - (8 - count),
                             static_cast<__mmask8>(0xffu >> count),
                             _mm512_maskz_compress_epi64(n, all));
  }
#else
  static constexpr LaneOrders<S::kCount> kOrders;
  const auto order =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOrders.row[first]));
  const auto both =
      (typename S::V)_mm256_permutevar8x32_epi32((__m256i)v, order);
  S::store(left, both);
  S::store(right - S::kCount, both);
#endif
  return count;
}

// Bit i is lane i of a less-than b, or of a not greater than b.
template <bool kOrEqual, class T>
BERTH_INLINE uint32_t lanes_below(typename SortVector<T>::V a,
                                  typename SortVector<T>::V b) {
#if defined(__AVX512F__)
  constexpr int kHow = kOrEqual ? _MM_CMPINT_LE : _MM_CMPINT_LT;
  constexpr int kHowFloats = kOrEqual ? _CMP_LE_OQ : _CMP_LT_OQ;
  if constexpr (T(0.5) != T(0)) {
    if constexpr (sizeof(T) == 4) {
      return _mm512_cmp_ps_mask((__m512)a, (__m512)b, kHowFloats);
    } else {
      return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, kHowFloats);
    }
  } else if constexpr (sizeof(T) == 4) {
    return _mm512_cmp_epi32_mask((__m512i)a, (__m512i)b, kHow);
  } else {
    return _mm512_cmp_epi64_mask((__m512i)a, (__m512i)b, kHow);
  }
#else
  const auto below = kOrEqual ? a <= b : a < b;
  if constexpr (sizeof(T) == 4) {
    return static_cast<uint32_t>(_mm256_movemask_ps((__m256)below));
  } else {
    return static_cast<uint32_t>(_mm256_movemask_pd((__m256d)below));
  }
#endif
}

// Splits of long rows read this many vectors at a time.
inline constexpr int kSplitVectors = 8;
template <class T>
inline constexpr int64_t kShortSplit = 4 * kSplitVectors* SortVector<T>::kCount;

// Moves what is below the pivot to the front of x[n] and returns how many that
// are; n < kShortSplit.

template <bool kOrEqual, class T>
BERTH_INLINE int64_t split_short(T* x, int64_t n, T pivot) {
  using S = SortVector<T>;
  const auto at = S::set(pivot);
  T others[kShortSplit<T> + S::kCount];
  T* const end = others + kShortSplit<T> + S::kCount;
  T *left = x, *right = end;
  int64_t i = 0;
  for (; i + S::kCount <= n; i += S::kCount) {
    const auto v = S::load(x + i);
    const int64_t count =
        split_vector<T>(v, lanes_below<kOrEqual, T>(v, at), left, right);
    left += count;
    right -= S::kCount - count;
  }
  for (; i < n; ++i) {
    const T v = x[i];
    const bool below = kOrEqual ? v <= pivot : v < pivot;
    *left = v;
    *(right - 1) = v;
    left += below;
    right -= !below;
  }
  __builtin_memcpy(left, right, static_cast<size_t>(end - right) * sizeof(T));
  return left - x;
}

// Splits any n. Both ends and the rest of the middle are set aside first, which
// leaves space for what is split.
template <bool kOrEqual, class T>
[[gnu::noinline]] int64_t split(T* x, int64_t n, T pivot) {
  using S = SortVector<T>;
  constexpr int64_t kChunk = kSplitVectors * S::kCount;
  if (n < kShortSplit<T>) return split_short<kOrEqual>(x, n, pivot);
  const auto at = S::set(pivot);
  T aside[kShortSplit<T>];
  const int64_t middle = n % kChunk;
  const int64_t held = 2 * kChunk + middle;
  const auto put_aside = [&](int64_t to, const T* from, int64_t count) {
    __builtin_memcpy(aside + to, from, static_cast<size_t>(count) * sizeof(T));
  };
  put_aside(0, x, kChunk);
  put_aside(kChunk, x + n - kChunk - middle, kChunk + middle);
  T *left = x, *right = x + n;
  T *first = x + kChunk, *last = x + n - kChunk - middle;  // unread
  while (first < last) {
    const T* from;
    if (first - left < right - last) {  // the side with less space
      from = first;
      first += kChunk;
    } else {
      last -= kChunk;
      from = last;
    }
    typename S::V v[kSplitVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kSplitVectors; ++i)
      v[i] = S::load(from + i * S::kCount);
#pragma GCC unroll 8
    for (int i = 0; i < kSplitVectors; ++i) {
      const int64_t count = split_vector<T>(
          v[i], lanes_below<kOrEqual, T>(v[i], at), left, right);
      left += count;
      right -= S::kCount - count;
    }
  }
  const int64_t below = split_short<kOrEqual>(aside, held, pivot);
  __builtin_memcpy(left, aside, static_cast<size_t>(held) * sizeof(T));
  return left - x + below;
}

// An element near the middle of x[n].
template <class T>
T pivot_of(const T* x, int64_t n) {
  using S = SortVector<T>;
  T sample[4 * S::kCount];
  const int64_t count = n < 16 * S::kFew ? S::kCount : 4 * S::kCount;
  const int64_t step = n / count;
  for (int64_t i = 0; i < count; ++i) sample[i] = x[i * step + step / 2];
  sort_few(sample, count);
  return sample[count / 2];
}

template <class T>
void sift_down(T* heap, int64_t at, int64_t n) {
  const T moved = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && heap[child] < heap[child + 1]) ++child;
    if (heap[child] <= moved) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

// For rows that yield bad pivots again and again.
template <class T>
void heap_sort(T* x, int64_t n) {
  for (int64_t i = n / 2; i-- > 0;) sift_down(x, i, n);
  for (int64_t i = n; i-- > 1;) {
    const T largest = x[0];
    x[0] = x[i];
    x[i] = largest;
    sift_down(x, 0, i);
  }
}

// Sorts x[n]; after `splits` splits of a row, the rest of it by heap_sort.
template <class T>
void quick_sort(T* x, int64_t n, int splits) {
  while (n > SortVector<T>::kFew) {
    if (splits-- == 0) return heap_sort(x, n);
    const T pivot = pivot_of(x, n);
    int64_t below = split<false>(x, n, pivot);
    if (below == 0) {  // the pivot is the smallest, maybe of many that equal it
      below = split<true>(x, n, pivot);
    } else {
      quick_sort(x, below, splits);
    }
    x += below;
    n -= below;
  }
  sort_few(x, n);
}

template <class T>
struct BitsOf {
  using Type = uint32_t;
};
template <>
struct BitsOf<double> {
  using Type = uint64_t;
};

// Copies x[n] to y; returns whether it is free of NaN and -0.
template <class T>
bool copy_ordinary(const T* x, T* y, int64_t n) {
  if constexpr (T(0.5) == T(0)) {
    if (x != y) __builtin_memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
    return true;
  } else {
    using Bits = typename BitsOf<T>::Type;
    constexpr Bits kInf = __builtin_bit_cast(Bits, T(__builtin_inf()));
    constexpr Bits kMinusZero = __builtin_bit_cast(Bits, T(-0.0));
    // Bits of -0 follow those of the NaNs without a sign.
    Bits distance = ~Bits{0}, largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Bits bits = __builtin_bit_cast(Bits, x[i]);
      const Bits from_nans = bits - (kInf + 1);
      distance = from_nans < distance ? from_nans : distance;
      largest = bits > largest ? bits : largest;
      y[i] = x[i];
    }
    return distance > kMinusZero - (kInf + 1) && largest <= (kInf | kMinusZero);
  }
}

template <class T>
bool sorted(const T* x, T* y, int64_t n, int splits) {
  if (!copy_ordinary(x, y, n)) return false;
  quick_sort(y, n, splits);
  return true;
}

#endif  // __AVX2__

template <class T>
constexpr auto sort_loop() -> bool (*)(const T*, T*, int64_t, int) {
#if defined(__AVX2__)
  return sorted<T>;
#else
  return nullptr;
#endif
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_SORT_H_
