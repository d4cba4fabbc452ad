// Pools over windows of images [n, h, w, c]: maximum, mean, their gradients.
// An item has a channel of a pixel. INDEX counts elements.

typedef struct {
  i64 n, h, w, c, oh, ow;
  i64 kh, kw, sh, sw, ph, pw;
} Pool;

// Channel c of pixel (n, y, x) of an image or result.
typedef struct {
  INDEX n, y, x, c;
  i32 is;  // 0: no such item
} Place;

FN Place place_of(const Pool *p, i64 item, i64 height, i64 width) {
  Place a;
  const INDEX channels = (INDEX)p->c;
  const INDEX pixel = (INDEX)item / channels, row = pixel / (INDEX)width;
  a.is = item < p->n * height * width * channels;
  a.c = (INDEX)item - pixel * channels;
  a.x = pixel - row * (INDEX)width;
  a.n = row / (INDEX)height;
  a.y = row - a.n * (INDEX)height;
  return a;
}

// [y0, y1) x [x0, x1): the pixels of a window, or the windows of a pixel.
typedef struct {
  INDEX y0, y1, x0, x1;
} Area;

FN Area area_of_window(const Pool *p, Place a) {
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

FN Area windows_of_pixel(const Pool *p, Place a) {
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

FN i64 image_place(const Pool *p, Place a, INDEX y, INDEX x) {
  return ((a.n * p->h + y) * p->w + x) * p->c + a.c;
}
FN i64 result_place(const Pool *p, Place a, INDEX y, INDEX x) {
  return ((a.n * p->oh + y) * p->ow + x) * p->c + a.c;
}

// True for a pixel that takes the place of the largest so far: the first of
// equals stays; a NaN is larger than all.
#define LARGER(v, best) ((v) > (best) || ((v) != (v) && (best) == (best)))

KERNEL(FLAT_SIZE, pool_max)(BUF(const T, x), BUF(T, y), const Pool p) {
  AT(const T, x);
  AT(T, y);
  const Place a = place_of(&p, ITEM, p.oh, p.ow);
  if (!a.is) return;
  const Area w = area_of_window(&p, a);
  T_C best = T_LOAD(x, image_place(&p, a, w.y0, w.x0));
  for (INDEX iy = w.y0; iy < w.y1; ++iy) {
    for (INDEX ix = w.x0; ix < w.x1; ++ix) {
      const T_C v = T_LOAD(x, image_place(&p, a, iy, ix));
      best = LARGER(v, best) ? v : best;
    }
  }
  T_STORE(y, result_place(&p, a, a.y, a.x), best);
}

// Where the largest lies, within its image.
#define FIND_LARGEST(x, p, a, best, place)                             \
  const Area w = area_of_window(&p, a);                                \
  const INDEX image = (INDEX)(a.n * p.h * p.w * p.c);                  \
  INDEX place = (INDEX)image_place(&p, a, w.y0, w.x0) - image;         \
  T_C best = T_LOAD(x, image + place);                                 \
  for (INDEX iy = w.y0; iy < w.y1; ++iy) {                             \
    for (INDEX ix = w.x0; ix < w.x1; ++ix) {                           \
      const INDEX from = (INDEX)image_place(&p, a, iy, ix);            \
      const T_C v = T_LOAD(x, from);                                   \
      const i32 larger = LARGER(v, best);                              \
      best = larger ? v : best;                                        \
      place = larger ? from - image : place;                           \
    }                                                                  \
  }

KERNEL(FLAT_SIZE, pool_argmax)(BUF(const T, x), BUF(T, y), BUF(i64, argmax),
                               const Pool p, const i32 values) {
  AT(const T, x);
  AT(T, y);
  AT(i64, argmax);
  const Place a = place_of(&p, ITEM, p.oh, p.ow);
  if (!a.is) return;
  FIND_LARGEST(x, p, a, best, place)
  const i64 to = result_place(&p, a, a.y, a.x);
  if (values) T_STORE(y, to, best);
  argmax[to] = place;
}

// The elements of ddx that were the largest of x.
KERNEL(FLAT_SIZE, pool_max_grad_grad)(BUF(const T, x), BUF(const T, ddx),
                                      BUF(T, ddy), const Pool p) {
  AT(const T, x);
  AT(const T, ddx);
  AT(T, ddy);
  const Place a = place_of(&p, ITEM, p.oh, p.ow);
  if (!a.is) return;
  FIND_LARGEST(x, p, a, best, place)
  T_STORE(ddy, result_place(&p, a, a.y, a.x), T_LOAD(ddx, image + place));
}

// A pixel gets dy of the windows that it is the largest of.
KERNEL(FLAT_SIZE, pool_max_grad)(BUF(const i64, argmax), BUF(const T, dy),
                                 BUF(T, dx), const Pool p) {
  AT(const i64, argmax);
  AT(const T, dy);
  AT(T, dx);
  const Place a = place_of(&p, ITEM, p.h, p.w);
  if (!a.is) return;
  const Area w = windows_of_pixel(&p, a);
  const i64 to = image_place(&p, a, a.y, a.x);
  const i64 own = to - a.n * p.h * p.w * p.c;
  T_C sum = T_ZERO;
  for (INDEX oy = w.y0; oy < w.y1; ++oy) {
    for (INDEX ox = w.x0; ox < w.x1; ++ox) {
      const i64 from = result_place(&p, a, oy, ox);
      const T_C v = T_LOAD(dy, from);
      sum = argmax[from] == own ? sum + v : sum;
    }
  }
  T_STORE(dx, to, sum);
}

KERNEL(FLAT_SIZE, pool_mean)(BUF(const T, x), BUF(T, y), const Pool p) {
  AT(const T, x);
  AT(T, y);
  const Place a = place_of(&p, ITEM, p.oh, p.ow);
  if (!a.is) return;
  const Area w = area_of_window(&p, a);
  T_C sum = T_ZERO;
  for (INDEX iy = w.y0; iy < w.y1; ++iy) {
    for (INDEX ix = w.x0; ix < w.x1; ++ix) {
      sum += T_LOAD(x, image_place(&p, a, iy, ix));
    }
  }
  const T_C count = T_OF((w.y1 - w.y0) * (w.x1 - w.x0));
  T_STORE(y, result_place(&p, a, a.y, a.x), sum / count);
}

// A pixel gets its share of dy of each window that it is in.
KERNEL(FLAT_SIZE, pool_mean_grad)(BUF(const T, dy), BUF(T, dx), const Pool p) {
  AT(const T, dy);
  AT(T, dx);
  const Place a = place_of(&p, ITEM, p.h, p.w);
  if (!a.is) return;
  const Area w = windows_of_pixel(&p, a);
  T_C sum = T_ZERO;
  Place window = a;
  for (window.y = w.y0; window.y < w.y1; ++window.y) {
    for (window.x = w.x0; window.x < w.x1; ++window.x) {
      const Area of = area_of_window(&p, window);
      const T_C count = T_OF((of.y1 - of.y0) * (of.x1 - of.x0));
      sum += T_LOAD(dy, result_place(&p, a, window.y, window.x)) / count;
    }
  }
  T_STORE(dx, image_place(&p, a, a.y, a.x), sum);
}
