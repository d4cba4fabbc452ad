// Convolutions and their gradients.

#include <algorithm>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "op/window.h"

namespace berth::reference {

namespace {

// A convolution of image x [n, h, w, c], filter [kh, kw, c, o] and result y [n,
// oh, ow, o]; the caller decides which of them is computed.
struct Conv {
  WindowAxes at;
  Shape x, filter, y;
  int64_t groups;

  Conv(const KernelCall& c, const View& image, const View& weights,
       const View& result)
      : at(conv_windows(*c.op, c.attrs, *image.shape, *weights.shape)),
        x(*image.shape),
        filter(*weights.shape),
        y(*result.shape),
        groups(conv_groups(*c.op, c.attrs, x, filter)) {}

  // Calls fn(channel of x, weight of the tap, channel of y) for every pair of
  // channels of one group, ordered by x's channels.
  template <class Fn>
  void for_each_pair(Fn&& fn) const {
    const int64_t in = filter[2], out = y[3] / groups;
    for (int64_t i = 0; i < x[3]; ++i) {
      const int64_t first = i / in * out;
      for (int64_t o = first; o < first + out; ++o) fn(i, i % in * y[3] + o, o);
    }
  }

  // Calls fn(pixel of x, tap of filter, pixel of y) with offsets of the first
  // channel, for every pair that meets, ordered by y's pixels.
  template <class Fn>
  void for_each_tap(int64_t n, Fn&& fn) const {
    for (int64_t oy = 0; oy < y[1]; ++oy) {
      for (int64_t ox = 0; ox < y[2]; ++ox) {
        const int64_t to = ((n * y[1] + oy) * y[2] + ox) * y[3];
        for (int64_t ky = 0; ky < filter[0]; ++ky) {
          const int64_t iy = at.h.first(oy) + ky * at.h.dilation;
          if (iy < 0 || iy >= x[1]) continue;
          for (int64_t kx = 0; kx < filter[1]; ++kx) {
            const int64_t ix = at.w.first(ox) + kx * at.w.dilation;
            if (ix < 0 || ix >= x[2]) continue;
            fn(((n * x[1] + iy) * x[2] + ix) * x[3],
               (ky * filter[1] + kx) * filter[2] * filter[3], to);
          }
        }
      }
    }
  }
};

template <class T>
void store(const Scratch<double>& from, T* to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(from[i]);
}

void conv2d(const KernelCall& c) {
  const Conv conv(c, c.in[0], c.in[1], c.out[0]);
  const int64_t image = conv.y[1] * conv.y[2] * conv.y[3];
  with_floating(c.out[0].dtype, [&]<class T>(T) {
    const T *x = c.in[0].as<T>(), *filter = c.in[1].as<T>();
    Scratch<double> sums(static_cast<size_t>(image));
    for (int64_t n = 0; n < conv.y[0]; ++n) {
      std::fill(sums.begin(), sums.end(), 0.0);
      conv.for_each_tap(n, [&](int64_t from, int64_t tap, int64_t to) {
        double* sum = sums.data() + (to - n * image);
        conv.for_each_pair([&](int64_t i, int64_t weight, int64_t o) {
          sum[o] += double{x[from + i]} * filter[tap + weight];
        });
      });
      store(sums, c.out[0].as<T>() + n * image);
    }
  });
}

void backprop_input(const KernelCall& c) {
  const Conv conv(c, c.out[0], c.in[0], c.in[1]);
  const int64_t image = conv.x[1] * conv.x[2] * conv.x[3];
  with_floating(c.out[0].dtype, [&]<class T>(T) {
    const T *filter = c.in[0].as<T>(), *dy = c.in[1].as<T>();
    Scratch<double> sums(static_cast<size_t>(image));
    for (int64_t n = 0; n < conv.x[0]; ++n) {
      std::fill(sums.begin(), sums.end(), 0.0);
      conv.for_each_tap(n, [&](int64_t to, int64_t tap, int64_t from) {
        double* sum = sums.data() + (to - n * image);
        conv.for_each_pair([&](int64_t i, int64_t weight, int64_t o) {
          sum[i] += double{filter[tap + weight]} * dy[from + o];
        });
      });
      store(sums, c.out[0].as<T>() + n * image);
    }
  });
}

void backprop_filter(const KernelCall& c) {
  const Conv conv(c, c.in[0], c.out[0], c.in[1]);
  with_floating(c.out[0].dtype, [&]<class T>(T) {
    const T *x = c.in[0].as<T>(), *dy = c.in[1].as<T>();
    Scratch<double> sums(static_cast<size_t>(c.out[0].size()), 0.0);
    for (int64_t n = 0; n < conv.x[0]; ++n) {
      conv.for_each_tap(n, [&](int64_t from, int64_t tap, int64_t dy_at) {
        double* sum = sums.data() + tap;
        conv.for_each_pair([&](int64_t i, int64_t weight, int64_t o) {
          sum[weight] += double{x[from + i]} * dy[dy_at + o];
        });
      });
    }
    store(sums, c.out[0].as<T>());
  });
}

}  // namespace

void add_conv(KernelTable& t) {
  t.direct("Conv2D", kFloatingTypes, &conv2d, "reference");
  t.direct("Conv2DBackpropInput", kFloatingTypes, &backprop_input, "reference");
  t.direct("Conv2DBackpropFilter", kFloatingTypes, &backprop_filter,
           "reference");
}

}  // namespace berth::reference
