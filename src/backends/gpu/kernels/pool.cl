// Pools over windows of images [n, h, w, c]: maximum, mean, their gradients.
// An item has a pixel and CHUNK neighbouring channels of it. INDEX counts
// elements.

typedef struct {
  i64 n, h, w, c, oh, ow;
  i64 kh, kw, sh, sw, ph, pw;
} Pool;

#if IS_CPU
#define CHUNK 16
#else
#define CHUNK 1
#endif

// Channels [first, first + count) of pixel (n, y, x) of an image or result.
typedef struct {
  INDEX n, y, x, first;
  i32 count;  // 0: no such item
} Part;

FN Part part_of(const Pool *p, i64 item, i64 height, i64 width) {
  Part a;
  const INDEX blocks = (INDEX)((p->c + CHUNK - 1) / CHUNK);
  const INDEX pixel = (INDEX)item / blocks, row = pixel / (INDEX)width;
  a.count = 0;
  if (item >= p->n * height * width * blocks) return a;
  a.first = ((INDEX)item - pixel * blocks) * CHUNK;
  a.x = pixel - row * (INDEX)width;
  a.n = row / (INDEX)height;
  a.y = row - a.n * (INDEX)height;
  a.count = (i32)(p->c - a.first < CHUNK ? p->c - a.first : CHUNK);
  return a;
}

// [y0, y1) x [x0, x1): the pixels of a window, or the windows of a pixel.
typedef struct {
  INDEX y0, y1, x0, x1;
} Area;

FN Area area_of_window(const Pool *p, Part a) {
  Area r;
  const INDEX y = a.y * (INDEX)p->sh - (INDEX)p->ph;
  const INDEX x = a.x * (INDEX)p->sw - (INDEX)p->pw;
  r.y0 = y < 0 ? 0 : y;
  r.x0 = x < 0 ? 0 : x;
  r.y1 = y + (INDEX)p->kh < p->h ? y + (INDEX)p->kh : (INDEX)p->h;
  r.x1 = x + (INDEX)p->kw < p->w ? x + (INDEX)p->kw : (INDEX)p->w;
  return r;
}

FN INDEX first_window(INDEX at, i64 window, i64 stride) {
  const INDEX before = at - (INDEX)window + 1;
  return before <= 0 ? 0 : (before + (INDEX)stride - 1) / (INDEX)stride;
}

FN Area windows_of_pixel(const Pool *p, Part a) {
  Area r;
  const INDEX y = a.y + (INDEX)p->ph, x = a.x + (INDEX)p->pw;
  r.y0 = first_window(y, p->kh, p->sh);
  r.x0 = first_window(x, p->kw, p->sw);
  r.y1 = y / (INDEX)p->sh + 1;
  r.x1 = x / (INDEX)p->sw + 1;
  if (r.y1 > p->oh) r.y1 = (INDEX)p->oh;
  if (r.x1 > p->ow) r.x1 = (INDEX)p->ow;
  return r;
}

FN i64 image_place(const Pool *p, Part a, INDEX y, INDEX x) {
  return ((a.n * p->h + y) * p->w + x) * p->c + a.first;
}
FN i64 result_place(const Pool *p, Part a, INDEX y, INDEX x) {
  return ((a.n * p->oh + y) * p->ow + x) * p->c + a.first;
}

// True for a pixel that takes the place of the largest so far: the first of
// equals stays; a NaN is larger than all.
#define LARGER(v, best) ((v) > (best) || ((v) != (v) && (best) == (best)))

KERNEL(FLAT_SIZE, pool_max)(BUF(const T, x), BUF(T, y), const Pool p) {
  AT(const T, x);
  AT(T, y);
  const Part a = part_of(&p, ITEM, p.oh, p.ow);
  if (a.count == 0) return;
  const Area w = area_of_window(&p, a);
  T_C best[CHUNK];
  const i64 at = image_place(&p, a, w.y0, w.x0);
  for (i32 k = 0; k < a.count; ++k) best[k] = T_LOAD(x, at + k);
  for (INDEX iy = w.y0; iy < w.y1; ++iy) {
    for (INDEX ix = w.x0; ix < w.x1; ++ix) {
      GLOBAL const T *from = x + image_place(&p, a, iy, ix);
      for (i32 k = 0; k < a.count; ++k) {
        const T_C v = T_LOAD(from, k);
        best[k] = LARGER(v, best[k]) ? v : best[k];
      }
    }
  }
  const i64 to = result_place(&p, a, a.y, a.x);
  for (i32 k = 0; k < a.count; ++k) T_STORE(y, to + k, best[k]);
}

// Where the largest of each channel lies, within its image.
#define FIND_LARGEST(x, p, a, best, place)                             \
  const Area w = area_of_window(&p, a);                                \
  T_C best[CHUNK];                                                     \
  INDEX place[CHUNK];                                                  \
  {                                                                    \
    const i64 at = image_place(&p, a, w.y0, w.x0);                     \
    const INDEX image = (INDEX)(a.n * p.h * p.w * p.c);                \
    for (i32 k = 0; k < a.count; ++k) {                                \
      best[k] = T_LOAD(x, at + k);                                     \
      place[k] = (INDEX)at - image + k;                                \
    }                                                                  \
    for (INDEX iy = w.y0; iy < w.y1; ++iy) {                           \
      for (INDEX ix = w.x0; ix < w.x1; ++ix) {                         \
        const INDEX from = (INDEX)image_place(&p, a, iy, ix);          \
        for (i32 k = 0; k < a.count; ++k) {                            \
          const T_C v = T_LOAD(x, from + k);                           \
          const i32 larger = LARGER(v, best[k]);                       \
          best[k] = larger ? v : best[k];                              \
          place[k] = larger ? from - image + k : place[k];             \
        }                                                              \
      }                                                                \
    }                                                                  \
  }

KERNEL(FLAT_SIZE, pool_argmax)(BUF(const T, x), BUF(T, y), BUF(i64, argmax),
                               const Pool p, const i32 values) {
  AT(const T, x);
  AT(T, y);
  AT(i64, argmax);
  const Part a = part_of(&p, ITEM, p.oh, p.ow);
  if (a.count == 0) return;
  FIND_LARGEST(x, p, a, best, place)
  const i64 to = result_place(&p, a, a.y, a.x);
  for (i32 k = 0; k < a.count; ++k) {
    if (values) T_STORE(y, to + k, best[k]);
    argmax[to + k] = place[k];
  }
}

// The elements of ddx that were the largest of x.
KERNEL(FLAT_SIZE, pool_max_grad_grad)(BUF(const T, x), BUF(const T, ddx),
                                      BUF(T, ddy), const Pool p) {
  AT(const T, x);
  AT(const T, ddx);
  AT(T, ddy);
  const Part a = part_of(&p, ITEM, p.oh, p.ow);
  if (a.count == 0) return;
  FIND_LARGEST(x, p, a, best, place)
  const i64 to = result_place(&p, a, a.y, a.x);
  const i64 image = a.n * p.h * p.w * p.c;
  for (i32 k = 0; k < a.count; ++k) {
    T_STORE(ddy, to + k, T_LOAD(ddx, image + place[k]));
  }
}

// A pixel gets dy of the windows that it is the largest of.
KERNEL(FLAT_SIZE, pool_max_grad)(BUF(const i64, argmax), BUF(const T, dy),
                                 BUF(T, dx), const Pool p) {
  AT(const i64, argmax);
  AT(const T, dy);
  AT(T, dx);
  const Part a = part_of(&p, ITEM, p.h, p.w);
  if (a.count == 0) return;
  const Area w = windows_of_pixel(&p, a);
  const i64 to = image_place(&p, a, a.y, a.x);
  const i64 own = to - a.n * p.h * p.w * p.c;
  T_C sum[CHUNK];
  for (i32 k = 0; k < a.count; ++k) sum[k] = T_ZERO;
  for (INDEX oy = w.y0; oy < w.y1; ++oy) {
    for (INDEX ox = w.x0; ox < w.x1; ++ox) {
      const i64 from = result_place(&p, a, oy, ox);
      for (i32 k = 0; k < a.count; ++k) {
        const T_C v = T_LOAD(dy, from + k);
        sum[k] = argmax[from + k] == own + k ? sum[k] + v : sum[k];
      }
    }
  }
  for (i32 k = 0; k < a.count; ++k) T_STORE(dx, to + k, sum[k]);
}

KERNEL(FLAT_SIZE, pool_mean)(BUF(const T, x), BUF(T, y), const Pool p) {
  AT(const T, x);
  AT(T, y);
  const Part a = part_of(&p, ITEM, p.oh, p.ow);
  if (a.count == 0) return;
  const Area w = area_of_window(&p, a);
  T_C sum[CHUNK];
  for (i32 k = 0; k < a.count; ++k) sum[k] = T_ZERO;
  for (INDEX iy = w.y0; iy < w.y1; ++iy) {
    for (INDEX ix = w.x0; ix < w.x1; ++ix) {
      GLOBAL const T *from = x + image_place(&p, a, iy, ix);
      for (i32 k = 0; k < a.count; ++k) sum[k] += T_LOAD(from, k);
    }
  }
  const T_C count = T_OF((w.y1 - w.y0) * (w.x1 - w.x0));
  const i64 to = result_place(&p, a, a.y, a.x);
  for (i32 k = 0; k < a.count; ++k) T_STORE(y, to + k, sum[k] / count);
}

// A pixel gets its share of dy of each window that it is in.
KERNEL(FLAT_SIZE, pool_mean_grad)(BUF(const T, dy), BUF(T, dx), const Pool p) {
  AT(const T, dy);
  AT(T, dx);
  const Part a = part_of(&p, ITEM, p.h, p.w);
  if (a.count == 0) return;
  const Area w = windows_of_pixel(&p, a);
  T_C sum[CHUNK];
  for (i32 k = 0; k < a.count; ++k) sum[k] = T_ZERO;
  Part window = a;
  for (window.y = w.y0; window.y < w.y1; ++window.y) {
    for (window.x = w.x0; window.x < w.x1; ++window.x) {
      const Area of = area_of_window(&p, window);
      const T_C count = T_OF((of.y1 - of.y0) * (of.x1 - of.x0));
      GLOBAL const T *from = dy + result_place(&p, a, window.y, window.x);
      for (i32 k = 0; k < a.count; ++k) sum[k] += T_LOAD(from, k) / count;
    }
  }
  const i64 to = image_place(&p, a, a.y, a.x);
  for (i32 k = 0; k < a.count; ++k) T_STORE(dx, to + k, sum[k]);
}
