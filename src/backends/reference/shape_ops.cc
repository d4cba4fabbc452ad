// Shape, Size, Rank and ranges.

#include <cmath>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

void shape(const KernelCall& c) {
  const Shape& s = *c.in[0].shape;
  for (int i = 0; i < s.rank(); ++i) set_index(c.out[0], i, s[i]);
}
void size(const KernelCall& c) { set_index(c.out[0], 0, c.in[0].size()); }
void rank(const KernelCall& c) {
  set_index(c.out[0], 0, c.in[0].shape->rank());
}

template <class Fn>
void number_each(const KernelCall& c, Fn&& fn) {
  with_number(c.out[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) {
      const double v = fn(c.context->slice_origin + i);
      y[i] = static_cast<T>(std::is_integral_v<T> ? std::floor(v) : v);
    }
  });
}

void linspace(const KernelCall& c) {
  const double start = c.attr<double>("start"), stop = c.attr<double>("stop");
  const int64_t last = c.attr<int64_t>("num") - 1;
  number_each(c, [&](int64_t i) {
    if (i == last && last > 0) return stop;
    const double part =
        last > 0 ? static_cast<double>(i) / static_cast<double>(last) : 0;
    return start * (1 - part) + stop * part;
  });
}

void float_range(const KernelCall& c) {
  const double start = c.attr<double>("start"), delta = c.attr<double>("delta");
  number_each(
      c, [&](int64_t i) { return start + static_cast<double>(i) * delta; });
}

}  // namespace

void add_shape_ops(KernelTable& t) {
  t.direct("Shape", kEveryType, &shape, "reference");
  t.direct("Size", kEveryType, &size, "reference");
  t.direct("Rank", kEveryType, &rank, "reference");
  t.direct("LinSpace", kOwnNumbers, &linspace, "reference");
  t.direct("FloatRange", kOwnNumbers, &float_range, "reference");
}

}  // namespace berth::reference
