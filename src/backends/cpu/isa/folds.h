// Reductions of any number type and the table of function_loops.h; included
// once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_FOLDS_H_
#define BERTH_BACKENDS_CPU_ISA_FOLDS_H_

#include "backends/cpu/function_loops.h"
#include "backends/cpu/isa/functions.h"
#include "backends/cpu/isa/plain.h"
#include "backends/cpu/isa/sort.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// Free of branches, so that loops are vectorised.
struct FoldMax {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return ((a > b) | (a != a)) != 0 ? a : b;
  }
};
struct FoldMin {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return ((a < b) | (a != a)) != 0 ? a : b;
  }
};

// Integer type of the indices: 32 bits hold any axis, see ArgMax's kernel.
template <size_t kSize>
struct SizedPlace {
  using Type = int32_t;
};
template <>
struct SizedPlace<8> {
  using Type = int64_t;
};
template <size_t kSize>
using Sized = typename SizedPlace<kSize>::Type;

// Reduces x[n], n > 0: 64 runs side by side, folded pairwise, then the rest.
template <class T, class Acc, class Op>
BERTH_INLINE T fold_run(const T* x, int64_t n) {
  constexpr int kRuns = 64;
  int64_t i = 1;
  Acc y = Acc(x[0]);
  if (n >= kRuns) {
    Acc acc[kRuns];
    for (int j = 0; j < kRuns; ++j) acc[j] = Acc(x[j]);
    for (i = kRuns; i + kRuns <= n; i += kRuns) {
#pragma GCC ivdep
      for (int j = 0; j < kRuns; ++j) acc[j] = Op::apply(acc[j], Acc(x[i + j]));
    }
    for (int width = kRuns / 2; width > 0; width /= 2) {
#pragma GCC ivdep
      for (int j = 0; j < width; ++j) {
        acc[j] = Op::apply(acc[j], acc[j + width]);
      }
    }
    y = acc[0];
  }
  for (; i < n; ++i) y = Op::apply(y, Acc(x[i]));
  return T(y);
}

template <class T, class Acc, class Op>
void fold_inner(const void* a, void* b, int64_t rows, int64_t cols) {
  const auto* x = static_cast<const T*>(a);
  auto* y = static_cast<T*>(b);
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = fold_run<T, Acc, Op>(x + r * cols, cols);
  }
}

template <class T, class Acc, class Op>
void fold_outer(const void* a, void* b, int64_t rows, int64_t cols,
                int64_t ld) {
  const auto* x = static_cast<const T*>(a);
  auto* y = static_cast<T*>(b);
  constexpr int64_t kColumns = 512;
  Acc acc[kColumns];
  for (int64_t at = 0; at < cols; at += kColumns) {
    const int64_t size = cols - at < kColumns ? cols - at : kColumns;
    for (int64_t c = 0; c < size; ++c) acc[c] = Acc(x[at + c]);
    for (int64_t r = 1; r < rows; ++r) {
      const T* p = x + r * ld + at;
#pragma GCC ivdep
      for (int64_t c = 0; c < size; ++c) {
        acc[c] = Op::apply(acc[c], Acc(p[c]));
      }
    }
    for (int64_t c = 0; c < size; ++c) y[at + c] = T(acc[c]);
  }
}

BERTH_INLINE void put_place(void* y, int64_t i, bool wide, int64_t place) {
  if (wide) {
    static_cast<int64_t*>(y)[i] = place;
  } else {
    static_cast<int32_t*>(y)[i] = static_cast<int32_t>(place);
  }
}

template <class T, class Op>
void arg_inner(const void* a, void* y, bool wide, int64_t rows, int64_t cols) {
  const auto* x = static_cast<const T*>(a);
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    const T best = fold_run<T, T, Op>(x, cols);
    int64_t at = 0;
    if (best != best) {
      while (x[at] == x[at]) ++at;
    } else {
      while (x[at] != best) ++at;
    }
    put_place(y, r, wide, at);
  }
}

template <class T, class Op>
void arg_outer(const void* a, void* y, bool wide, int64_t rows, int64_t cols) {
  using Place = Sized<sizeof(T)>;  // as wide as T, so that both become vectors
  const auto* x = static_cast<const T*>(a);
  constexpr int64_t kColumns = 512;
  T best[kColumns];
  Place places[kColumns];
  for (int64_t at = 0; at < cols; at += kColumns) {
    const int64_t size = cols - at < kColumns ? cols - at : kColumns;
    for (int64_t c = 0; c < size; ++c) {
      best[c] = x[at + c];
      places[c] = 0;
    }
    for (int64_t r = 1; r < rows; ++r) {
      const T* p = x + r * cols + at;
      const auto place = static_cast<Place>(r);
#pragma GCC ivdep
      for (int64_t c = 0; c < size; ++c) {
        const T old = best[c], next = Op::apply(old, p[c]);
        const bool same = (next == old) | (old != old);
        best[c] = next;
        places[c] = same ? places[c] : place;
      }
    }
    for (int64_t c = 0; c < size; ++c) put_place(y, at + c, wide, places[c]);
  }
}

template <class T, class Op>
constexpr ArgLoops args() {
  return {arg_inner<T, Op>, arg_outer<T, Op>};
}

template <class T, class Acc, class Op>
constexpr FoldLoops folds() {
  return {fold_inner<T, Acc, Op>, fold_outer<T, Acc, Op>};
}

#define BERTH_FOLDS(op)                                               \
  {                                                                   \
    folds<float, float, op>(), folds<double, double, op>(),           \
        folds<int32_t, int32_t, op>(), folds<int64_t, int64_t, op>(), \
        folds<uint8_t, uint8_t, op>()                                 \
  }

const FunctionLoops& function_table() {
  static constexpr FunctionLoops kTable = {
      .sin = sine<0>,
      .cos = sine<1>,
      .fold = {BERTH_FOLDS(FoldMax),
               BERTH_FOLDS(FoldMin),
               BERTH_FOLDS(PlainAdd),
               {folds<float, double, PlainMul>(),
                folds<double, double, PlainMul>(),
                folds<int32_t, int32_t, PlainMul>(),
                folds<int64_t, int64_t, PlainMul>(),
                folds<uint8_t, uint8_t, PlainMul>()}},
      .arg = {{args<float, FoldMax>(), args<double, FoldMax>(),
               args<int32_t, FoldMax>(), args<int64_t, FoldMax>(),
               args<uint8_t, FoldMax>()},
              {args<float, FoldMin>(), args<double, FoldMin>(),
               args<int32_t, FoldMin>(), args<int64_t, FoldMin>(),
               args<uint8_t, FoldMin>()}},
      .sort = {sort_loop<float>(), sort_loop<double>(), sort_loop<int32_t>(),
               sort_loop<int64_t>()},
  };
  return kTable;
}

#undef BERTH_FOLDS

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_FOLDS_H_
