// Reductions over axes.

#include <limits>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "op/reduce_axes.h"

namespace berth::reference {

namespace {

// Calls fn(i, o) for each input element i and its output element o.
template <class Fn>
void for_each_reduced(const KernelCall& c, Fn&& fn) {
  const Shape& in = *c.in[0].shape;
  const auto reduced = reduced_axes(*c.op, c.attrs, in.rank());
  Shape kept = in;
  for (int i = 0; i < in.rank(); ++i) {
    if (reduced[i]) kept[i] = 1;
  }
  for_each_broadcast(in, in, kept,
                     [&](int64_t i, int64_t, int64_t o) { fn(i, o); });
}

template <class T, class Acc, class F>
void reduce(const KernelCall& c, Acc start, F&& combine, double divisor = 1) {
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  Scratch<Acc> sums(static_cast<size_t>(c.out[0].size()), start);
  for_each_reduced(c, [&](int64_t i, int64_t o) {
    sums[o] = combine(sums[o], static_cast<Acc>(x[i]));
  });
  for (size_t o = 0; o < sums.size(); ++o) {
    if constexpr (!std::is_integral_v<Acc>) {
      y[o] = static_cast<T>(sums[o] / divisor);
    } else {
      y[o] = static_cast<T>(sums[o]);
    }
  }
}

void sum(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    reduce<T, Wide<T>>(c, 0, [](auto a, auto b) { return a + b; });
  });
}
void prod(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    reduce<T, Wide<T>>(c, 1, [](auto a, auto b) { return a * b; });
  });
}
void mean(const KernelCall& c) {
  with_inexact(c.in[0].dtype, [&]<class T>(T) {
    const Shape* unsplit = c.context->unsplit;
    const double n =
        reduced_count(*c.op, c.attrs, unsplit ? *unsplit : *c.in[0].shape);
    reduce<T, Wide<T>>(
        c, 0, [](auto a, auto b) { return a + b; }, n);
  });
}

template <class T, bool kMax>
void extreme_of(const KernelCall& c) {
  using L = std::numeric_limits<T>;
  T start = kMax ? L::lowest() : L::max();
  if constexpr (std::is_floating_point_v<T>) {
    start = kMax ? -L::infinity() : L::infinity();
  }
  reduce<T, T>(c, start, [](T a, T b) {
    if (a != a || b != b) return a != a ? a : b;
    return (kMax ? b > a : b < a) ? b : a;
  });
}

template <bool kMax>
void extreme(const KernelCall& c) {
  // A wider type would give another extreme for an empty array.
  with_exact_number(c.in[0].dtype,
                    [&](auto type) { extreme_of<decltype(type), kMax>(c); });
}

void all(const KernelCall& c) {
  reduce<bool, bool>(c, true, [](bool a, bool b) { return a && b; });
}
void any(const KernelCall& c) {
  reduce<bool, bool>(c, false, [](bool a, bool b) { return a || b; });
}

template <bool kMax>
void arg_extreme(const KernelCall& c) {
  const Shape& in = *c.in[0].shape;
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), in.rank(), c.op->name().c_str());
  int64_t inner = 1;
  for (int i = axis + 1; i < in.rank(); ++i) inner *= in[i];
  const int64_t n = in[axis], total = c.out[0].size();
  with_number(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    for (int64_t o = 0; o < total; ++o) {
      const T* p = x + o / inner * inner * n + o % inner;
      int64_t best = 0;
      for (int64_t i = 1; i < n; ++i) {
        const T a = p[i * inner], b = p[best * inner];
        if ((kMax ? a > b : a < b) || (a != a && b == b)) best = i;
      }
      if (c.out[0].dtype == int32) {
        c.out[0].as<int32_t>()[o] = static_cast<int32_t>(best);
      } else {
        c.out[0].as<int64_t>()[o] = best;
      }
    }
  });
}

}  // namespace

void add_reduce(KernelTable& t) {
  t.direct("Sum", kRingTypes, &sum, "reference");
  t.direct("Prod", kRingTypes, &prod, "reference");
  t.direct("Mean", kRootTypes, &mean, "reference");
  t.direct("Max", kOwnNumbers | kMoreIntegers, &extreme<true>, "reference");
  t.direct("Min", kOwnNumbers | kMoreIntegers, &extreme<false>, "reference");
  t.direct("All", kBoolType, &all, "reference");
  t.direct("Any", kBoolType, &any, "reference");
  t.direct("ArgMax", kOwnNumbers, &arg_extreme<true>, "reference");
  t.direct("ArgMin", kOwnNumbers, &arg_extreme<false>, "reference");
}

}  // namespace berth::reference
