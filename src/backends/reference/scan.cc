// Cumulative ops and linear recurrences.

#include <cmath>
#include <limits>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

// Calls fn(line, step, n) for each line along the axis: `line` is the offset of
// its first element, `step` leads to the next of n.
template <class Fn>
void for_each_line(const KernelCall& c, Fn&& fn) {
  const Shape& shape = *c.in[0].shape;
  const int axis = normalize_axis(c.attr<int64_t>("axis"), shape.rank(),
                                  c.op->name().c_str());
  const int64_t outer = product_of(shape, 0, axis), n = shape[axis];
  const int64_t inner = product_of(shape, axis + 1, shape.rank());
  const bool reverse = c.attr<bool>("reverse");
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t first = o * n * inner + i;
      fn(reverse ? first + (n - 1) * inner : first, reverse ? -inner : inner,
         n);
    }
  }
}

template <class T, class Acc, class F>
void scan(const KernelCall& c, Acc start, F&& combine) {
  const bool exclusive = c.attr<bool>("exclusive");
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  for_each_line(c, [&](int64_t at, int64_t step, int64_t n) {
    Acc sum = start;
    for (int64_t i = 0; i < n; ++i, at += step) {
      const Acc next = combine(sum, static_cast<Acc>(x[at]));
      y[at] = static_cast<T>(exclusive ? sum : next);
      sum = next;
    }
  });
}

void cumsum(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    scan<T, Wide<T>>(c, 0, [](auto a, auto b) { return a + b; });
  });
}

void cumprod(const KernelCall& c) {
  with_number(c.in[0].dtype, [&]<class T>(T) {
    scan<T, Wide<T>>(c, 1, [](auto a, auto b) { return a * b; });
  });
}

double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const double high = b > a ? b : a;
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp((b > a ? a : b) - high));
}

void cumulative_logsumexp(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    scan<T, double>(c, -std::numeric_limits<double>::infinity(), &log_add);
  });
}

// The optional input 2 holds an id per position of the axis.
void linear_recurrence(const KernelCall& c) {
  const View* ids = c.num_in == 3 ? &c.in[2] : nullptr;
  const bool reverse = c.attr<bool>("reverse");
  const bool previous = c.attr<bool>("previous");
  const bool exclusive = c.attr<bool>("exclusive");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
    T* out = c.out[0].as<T>();
    for_each_line(c, [&](int64_t at, int64_t step, int64_t n) {
      const auto id_of = [&](int64_t i) {
        return index_at(*ids, reverse ? n - 1 - i : i);
      };
      double s = 0;
      for (int64_t i = 0; i < n; ++i, at += step) {
        // The first element has no predecessor to multiply.
        const bool first = i == 0 || (ids && id_of(i) != id_of(i - 1));
        if (first) s = 0;
        const double factor = first ? 0 : a[previous ? at - step : at];
        const double next = first ? b[at] : factor * s + b[at];
        out[at] = static_cast<T>(exclusive ? s : next);
        s = next;
      }
    });
  });
}

}  // namespace

void add_scan(KernelTable& t) {
  t.direct("Cumsum", kRingTypes, &cumsum, "reference");
  t.direct("Cumprod", kOwnNumbers, &cumprod, "reference");
  t.direct("CumulativeLogsumexp", kFloatingTypes, &cumulative_logsumexp,
           "reference");
  for (const char* op : {"LinearRecurrence", "SegmentRecurrence"}) {
    t.direct(op, kFloatingTypes, &linear_recurrence, "reference");
  }
}

}  // namespace berth::reference
