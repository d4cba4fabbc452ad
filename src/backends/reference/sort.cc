// Sorting, the largest k, searches and permutations.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

// NaN is larger than any number.
template <class T>
bool is_less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return a < b;
}

// Writes the indices of the first `k` elements of x[0, n) in order to `order`,
// which has space for n.
template <class T>
void order_row(const T* x, int64_t n, int64_t k, bool down, int32_t* order) {
  std::iota(order, order + n, 0);
  const auto before = [&](int32_t a, int32_t b) {
    if (down ? is_less(x[b], x[a]) : is_less(x[a], x[b])) return true;
    if (down ? is_less(x[a], x[b]) : is_less(x[b], x[a])) return false;
    return a < b;
  };
  if (k == n) {
    std::sort(order, order + n, before);
  } else {
    std::partial_sort(order, order + k, order + n, before);
  }
}

struct SortedRows {
  int64_t count, length;
};
SortedRows sorted_rows(const View& v) {
  const int last = v.shape->rank() - 1;
  return {product_of(*v.shape, 0, last), v.dim(last)};
}

void top_k(const KernelCall& c) {
  const SortedRows rows = sorted_rows(c.in[0]);
  const int64_t k = sorted_rows(c.out[0]).length;
  with_number(c.in[0].dtype, [&]<class T>(T) {
    Scratch<int32_t> order(static_cast<size_t>(rows.length));
    const T* x = c.in[0].as<T>();
    T* values = c.out[0].as<T>();
    auto* places = c.out[1].as<int32_t>();
    for (int64_t r = 0; r < rows.count; ++r, x += rows.length) {
      order_row(x, rows.length, k, true, order.data());
      for (int64_t i = 0; i < k; ++i) {
        *places++ = order[i];
        *values++ = x[order[i]];
      }
    }
  });
}

void arg_sort(const KernelCall& c) {
  const SortedRows rows = sorted_rows(c.in[0]);
  const bool down = c.attr<bool>("descending");
  with_number(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t r = 0; r < rows.count; ++r) {
      order_row(c.in[0].as<T>() + r * rows.length, rows.length, rows.length,
                down, c.out[0].as<int32_t>() + r * rows.length);
    }
  });
}

void sort(const KernelCall& c) {
  const SortedRows rows = sorted_rows(c.in[0]);
  const bool down = c.attr<bool>("descending");
  with_number(c.in[0].dtype, [&]<class T>(T) {
    const auto n = static_cast<size_t>(rows.length);
    Scratch<int32_t> places(n);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = c.in[0].as<T>() + r * rows.length;
      T* y = c.out[0].as<T>() + r * rows.length;
      order_row(x, rows.length, rows.length, down, places.data());
      for (size_t i = 0; i < n; ++i) y[i] = x[places[i]];
    }
  });
}

void in_top_k(const KernelCall& c) {
  const SortedRows rows = sorted_rows(c.in[0]);
  const int64_t k = c.attr<int64_t>("k");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = c.in[0].as<T>() + r * rows.length;
      const int64_t target = index_at(c.in[1], r);
      bool in = target >= 0 && target < rows.length && std::isfinite(x[target]);
      if (in) {
        // A row with NaN or infinity has no useful order.
        int64_t larger = 0;
        for (int64_t i = 0; i < rows.length; ++i) {
          in = in && std::isfinite(x[i]);
          larger += x[i] > x[target];
        }
        in = in && larger < k;
      }
      c.out[0].as<bool>()[r] = in;
    }
  });
}

template <bool kUpper>
void bound(const KernelCall& c) {
  const SortedRows sorted = sorted_rows(c.in[0]), values = sorted_rows(c.in[1]);
  with_number(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t r = 0; r < values.count; ++r) {
      const T* begin = c.in[0].as<T>() + r * sorted.length;
      const T* end = begin + sorted.length;
      for (int64_t i = 0; i < values.length; ++i) {
        const int64_t at = r * values.length + i;
        const T v = c.in[1].as<T>()[at];
        const T* place = kUpper ? std::upper_bound(begin, end, v, is_less<T>)
                                : std::lower_bound(begin, end, v, is_less<T>);
        set_index(c.out[0], at, place - begin);
      }
    }
  });
}

void invert_permutation(const KernelCall& c) {
  const int64_t n = c.in[0].size();
  for (int64_t i = 0; i < n; ++i) set_index(c.out[0], i, -1);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = checked_index(c, c.in[0], i, *c.in[0].shape, 0);
    if (index_at(c.out[0], at) >= 0) {
      throw errors::InvalidArgument(
          fmt::format("InvertPermutation: {} appears twice, also at place {}; "
                      "expected each of 0 to {} once",
                      at, i, n - 1));
    }
    set_index(c.out[0], at, i);
  }
}

}  // namespace

void add_sort(KernelTable& t) {
  t.direct("TopKV2", kOwnNumbers, &top_k, "reference");
  t.direct("ArgSort", kOwnNumbers, &arg_sort, "reference");
  t.direct("Sort", kOwnNumbers, &sort, "reference");
  t.direct("InTopKV2", kFloatingTypes, &in_top_k, "reference");
  t.direct("LowerBound", kOwnNumbers, &bound<false>, "reference");
  t.direct("UpperBound", kOwnNumbers, &bound<true>, "reference");
  t.direct("InvertPermutation", kIndexTypes, &invert_permutation, "reference");
}

}  // namespace berth::reference
