// Pooling windows; included once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_WINDOWS_H_
#define BERTH_BACKENDS_CPU_ISA_WINDOWS_H_

#include "backends/cpu/isa/elementwise.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// The part of one output's window that lies inside the image.
struct Window {
  int64_t y0, y1, x0, x1;
  int64_t count() const { return (y1 - y0) * (x1 - x0); }
};

BERTH_INLINE Window window_of(const PoolShape& s, int64_t oy, int64_t ox) {
  const int64_t y = oy * s.stride_h - s.pad_top;
  const int64_t x = ox * s.stride_w - s.pad_left;
  const int64_t y1 = y + s.window_h, x1 = x + s.window_w;
  Window w = {y > 0 ? y : 0, y1 < s.in_h ? y1 : s.in_h, x > 0 ? x : 0,
              x1 < s.in_w ? x1 : s.in_w};
  if (w.y1 < w.y0) w.y1 = w.y0;
  if (w.x1 < w.x0) w.x1 = w.x0;
  return w;
}

// Calls body(window, input image offset, output pixel offset).
template <class Body>
BERTH_INLINE void for_windows(const PoolShape& s, int64_t first, int64_t last,
                              Body&& body) {
  const int64_t image = s.in_h * s.in_w * s.channels;
  int64_t out = first * s.out_h * s.out_w * s.channels;
  for (int64_t n = first; n < last; ++n) {
    for (int64_t oy = 0; oy < s.out_h; ++oy) {
      for (int64_t ox = 0; ox < s.out_w; ++ox, out += s.channels) {
        body(window_of(s, oy, ox), n * image, out);
      }
    }
  }
}

inline void max_pool(const PoolShape& s, const float* x, float* y,
                     int64_t first, int64_t last) {
  const int64_t line = s.in_w * s.channels;
  for_windows(s, first, last, [=](const Window& w, int64_t in, int64_t out) {
    for_vectors(s.channels, [=](int64_t c, auto part) {
      F top = A::set(-kInfinity);
      for (int64_t iy = w.y0; iy < w.y1; ++iy) {
        const float* p = x + in + iy * line + c;
        for (int64_t ix = w.x0; ix < w.x1; ++ix) {
          top = max_nan(top, part.load(p + ix * s.channels));
        }
      }
      part.store(y + out + c, top);
    });
  });
}

// True when the windows tile the image without gap or overlap.
BERTH_INLINE bool tiles(const PoolShape& s) {
  return s.window_h == s.stride_h && s.window_w == s.stride_w &&
         s.pad_top == 0 && s.pad_left == 0 && s.out_h * s.window_h == s.in_h &&
         s.out_w * s.window_w == s.in_w;
}

inline void max_pool_grad(const PoolShape& s, const float* x, const float* y,
                          const float* dy, float* dx, int64_t first,
                          int64_t last) {
  const int64_t line = s.in_w * s.channels, image = s.in_h * line;
  const bool tiled = tiles(s);
  if (!tiled) fill(0.0f, dx + first * image, (last - first) * image);
  for_windows(s, first, last, [=](const Window& w, int64_t in, int64_t out) {
    for_vectors(s.channels, [=](int64_t c, auto part) {
      const F top = part.load(y + out + c);
      F left = part.load(dy + out + c);  // not yet assigned to a position
      for (int64_t iy = w.y0; iy < w.y1; ++iy) {
        for (int64_t ix = w.x0; ix < w.x1; ++ix) {
          const int64_t at = in + iy * line + ix * s.channels + c;
          const F here = part.load(x + at);
          const auto chosen = (here == top) | (here != here);
          const F gift = A::select(chosen, left, F{});
          left = A::select(chosen, F{}, left);
          part.store(dx + at, tiled ? gift : part.load(dx + at) + gift);
        }
      }
    });
  });
}

inline void avg_pool(const PoolShape& s, const float* x, float* y,
                     int64_t first, int64_t last) {
  const int64_t line = s.in_w * s.channels;
  for_windows(s, first, last, [=](const Window& w, int64_t in, int64_t out) {
    const F count = A::set(static_cast<float>(w.count()));
    for_vectors(s.channels, [=](int64_t c, auto part) {
      F total = {};
      for (int64_t iy = w.y0; iy < w.y1; ++iy) {
        const float* p = x + in + iy * line + c;
        for (int64_t ix = w.x0; ix < w.x1; ++ix) {
          total += part.load(p + ix * s.channels);
        }
      }
      part.store(y + out + c, total / count);
    });
  });
}

inline void avg_pool_grad(const PoolShape& s, const float* dy, float* dx,
                          int64_t first, int64_t last) {
  const int64_t line = s.in_w * s.channels, image = s.in_h * line;
  fill(0.0f, dx + first * image, (last - first) * image);
  for_windows(s, first, last, [=](const Window& w, int64_t in, int64_t out) {
    if (w.count() == 0) return;
    const F count = A::set(static_cast<float>(w.count()));
    for_vectors(s.channels, [=](int64_t c, auto part) {
      const F share = part.load(dy + out + c) / count;
      for (int64_t iy = w.y0; iy < w.y1; ++iy) {
        float* p = dx + in + iy * line + c;
        for (int64_t ix = w.x0; ix < w.x1; ++ix) {
          float* q = p + ix * s.channels;
          part.store(q, part.load(q) + share);
        }
      }
    });
  });
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_WINDOWS_H_
