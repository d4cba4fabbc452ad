// Pooling and its gradients.

#include <algorithm>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "op/window.h"

namespace berth::reference {

namespace {

// Pixels [begin, end) of one axis that window o covers.
struct Range {
  int64_t begin, end;
  Range(const WindowAxis& a, int64_t o)
      : begin(std::max<int64_t>(a.first(o), 0)),
        end(std::min(a.first(o) + a.window, a.in)) {}
  int64_t size() const { return std::max<int64_t>(end - begin, 0); }
};

// Calls fn(offset in y, offset in x of the image's channel, rows, columns)
// for each window and channel.
template <class Fn>
void for_each_window(const KernelCall& c, const Shape& x, Fn&& fn) {
  const WindowAxes at = pool_windows(*c.op, c.attrs, x);
  int64_t to = 0;
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t oy = 0; oy < at.h.out; ++oy) {
      for (int64_t ox = 0; ox < at.w.out; ++ox) {
        for (int64_t ch = 0; ch < x[3]; ++ch) {
          fn(to++, n * x[1] * x[2] * x[3] + ch, Range(at.h, oy),
             Range(at.w, ox));
        }
      }
    }
  }
}

// Returns the offset of the largest pixel, the first of equal ones; NaN is the
// largest. Every window has a pixel in the image.
template <class T>
int64_t largest(const T* x, const Shape& s, int64_t base, Range h, Range w) {
  int64_t best = base + (h.begin * s[2] + w.begin) * s[3];
  for (int64_t iy = h.begin; iy < h.end; ++iy) {
    for (int64_t ix = w.begin; ix < w.end; ++ix) {
      const int64_t at = base + (iy * s[2] + ix) * s[3];
      const bool nan = x[at] != x[at], best_nan = x[best] != x[best];
      if (x[at] > x[best] || (nan && !best_nan)) best = at;
    }
  }
  return best;
}

void max_pool(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    const Shape& s = *c.in[0].shape;
    for_each_window(c, s, [&](int64_t to, int64_t base, Range h, Range w) {
      y[to] = x[largest(x, s, base, h, w)];
    });
  });
}

void max_pool_with_argmax(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    const Shape& s = *c.in[0].shape;
    const int64_t image = product_of(s, 1, 4);
    for_each_window(c, s, [&](int64_t to, int64_t base, Range h, Range w) {
      const int64_t at = largest(x, s, base, h, w);
      c.out[0].as<T>()[to] = x[at];
      c.out[1].as<int64_t>()[to] = at % image;
    });
  });
}

void max_pool_grad(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T *x = c.in[0].as<T>(), *dy = c.in[2].as<T>();
    const Shape& s = *c.in[0].shape;
    Scratch<double> sums(static_cast<size_t>(c.out[0].size()), 0.0);
    for_each_window(c, s, [&](int64_t from, int64_t base, Range h, Range w) {
      sums[largest(x, s, base, h, w)] += dy[from];
    });
    T* dx = c.out[0].as<T>();
    for (size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
}

void max_pool_grad_grad(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T *x = c.in[0].as<T>(), *ddx = c.in[2].as<T>();
    T* ddy = c.out[0].as<T>();
    const Shape& s = *c.in[0].shape;
    for_each_window(c, s, [&](int64_t to, int64_t base, Range h, Range w) {
      ddy[to] = ddx[largest(x, s, base, h, w)];
    });
  });
}

void avg_pool(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    const Shape& s = *c.in[0].shape;
    for_each_window(c, s, [&](int64_t to, int64_t base, Range h, Range w) {
      double sum = 0;
      for (int64_t iy = h.begin; iy < h.end; ++iy) {
        for (int64_t ix = w.begin; ix < w.end; ++ix) {
          sum += x[base + (iy * s[2] + ix) * s[3]];
        }
      }
      y[to] = static_cast<T>(sum / static_cast<double>(h.size() * w.size()));
    });
  });
}

void avg_pool_grad(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* dy = c.in[0].as<T>();
    const Shape& s = *c.out[0].shape;
    Scratch<double> sums(static_cast<size_t>(c.out[0].size()), 0.0);
    for_each_window(c, s, [&](int64_t from, int64_t base, Range h, Range w) {
      const double share = dy[from] / static_cast<double>(h.size() * w.size());
      for (int64_t iy = h.begin; iy < h.end; ++iy) {
        for (int64_t ix = w.begin; ix < w.end; ++ix) {
          sums[base + (iy * s[2] + ix) * s[3]] += share;
        }
      }
    });
    T* dx = c.out[0].as<T>();
    for (size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
}

}  // namespace

void add_pool(KernelTable& t) {
  t.direct("MaxPool", kFloatingTypes, &max_pool, "reference");
  t.direct("MaxPoolWithArgmax", kFloatingTypes, &max_pool_with_argmax,
           "reference");
  t.direct("MaxPoolGrad", kFloatingTypes, &max_pool_grad, "reference");
  t.direct("MaxPoolGradGrad", kFloatingTypes, &max_pool_grad_grad, "reference");
  t.direct("AvgPool", kFloatingTypes, &avg_pool, "reference");
  t.direct("AvgPoolGrad", kFloatingTypes, &avg_pool_grad, "reference");
}

}  // namespace berth::reference
