// The operands of a convolution and of its gradients, for product.cl. Images
// are [n, h, w, c], filters [kh, kw, c / groups, o], results [n, oh, ow, o]; a
// batch is a group of channels. CONV says what the rows, the inner dimension
// and the columns are:
//   0  the result:          pixels of y;           taps and channels; outputs
//   1  gradient of image:   pixels of x;           taps and outputs; channels
//   2  gradient of filter:  taps and channels;     pixels of y; outputs

typedef struct {
  PRODUCT_FIELDS;
  i64 h, w, c, oh, ow, o;
  i64 kh, kw, sh, sw, dh, dw, ph, pw;
  i64 cg, og;  // channels of a group
} Problem;

// The part that a row or an inner index has in a place: a pixel, or a tap and
// a channel. i and j count along the two fastest axes.
typedef struct {
  i64 base, b;
  INDEX y, x, i, j;
} Key;

// Inner indices from `key` on whose places go by strides, all inside or none:
// the channels of a tap. inner_skip() goes no further than that.
FN i64 inner_run(const Problem *p, Key key) {
#if CONV == 0
  return p->cg - key.i;
#elif CONV == 1
  return p->og - key.i;
#else
  return 1;
#endif
}
FN i64 a_stride(const Problem *p) { return 1; }
FN i64 b_stride(const Problem *p) {
#if CONV == 1
  return 1;
#else
  return p->o;
#endif
}
// The first pixel of window (oy, ox) of image n, of those that q counts.
FN Key window_key(const Problem *p, i64 q) {
  Key key;
  const INDEX row = (INDEX)q / (INDEX)p->ow;
  const INDEX n = row / (INDEX)p->oh;
  key.i = (INDEX)q - row * (INDEX)p->ow;
  key.j = row - n * (INDEX)p->oh;
  key.base = n * p->h * p->w * p->c;
  key.b = q * p->o;
  key.y = key.j * (INDEX)p->sh - (INDEX)p->ph;
  key.x = key.i * (INDEX)p->sw - (INDEX)p->pw;
  return key;
}

// Channel and tap of q, of which each tap has `channels`.
FN Key tap_key(const Problem *p, i64 q, i64 channels) {
  Key key;
  const INDEX tap = (INDEX)q / (INDEX)channels;
  const INDEX ky = tap / (INDEX)p->kw;
  key.i = (INDEX)q - tap * (INDEX)channels;
  key.j = tap - ky * (INDEX)p->kw;
  key.base = key.i;
#if CONV == 1
  key.b = tap * p->cg * p->o + key.i;
#else
  key.b = q * p->o;
#endif
  key.y = ky * (INDEX)p->dh;
  key.x = key.j * (INDEX)p->dw;
  return key;
}

FN void tap_skip(const Problem *p, Key *key, i64 channels, i64 count) {
  key->i += (INDEX)count;
  key->base += count;
#if CONV == 1
  key->b += count;
#else
  key->b += count * p->o;
#endif
  if (key->i < channels) return;
  key->i = 0;
  key->base = 0;
#if CONV == 1
  key->b += p->cg * p->o - p->og;
#endif
  key->x += (INDEX)p->dw;
  if (++key->j < p->kw) return;
  key->j = 0;
  key->x = 0;
  key->y += (INDEX)p->dh;
}

FN void window_next(const Problem *p, Key *key) {
  key->b += p->o;
  key->x += (INDEX)p->sw;
  if (++key->i < p->ow) return;
  key->i = 0;
  key->x = -(INDEX)p->pw;
  key->y += (INDEX)p->sh;
  if (++key->j < p->oh) return;
  key->j = 0;
  key->y = -(INDEX)p->ph;
  key->base += p->h * p->w * p->c;
}

// Where tap `t` of the window at `at` meets the image; negative: outside.
FN i64 image_place(const Problem *p, Key at, Key t) {
  const INDEX y = at.y + t.y, x = at.x + t.x;
  if (y < 0 || y >= p->h || x < 0 || x >= p->w) return -1;
  return at.base + t.base + (y * p->w + x) * p->c;
}

#if CONV == 0

FN Key row_key(const Problem *p, i64 z, i64 r) {
  Key key = window_key(p, r);
  key.base += z * p->cg;
  return key;
}
FN Key inner_key(const Problem *p, i64 z, i64 q) {
  return tap_key(p, q, p->cg);
}
FN void inner_skip(const Problem *p, Key *key, i64 count) {
  tap_skip(p, key, p->cg, count);
}
FN i64 a_place(const Problem *p, Key row, Key inner) {
  return image_place(p, row, inner);
}
FN i64 b_base(const Problem *p, i64 z) { return z * p->og; }

#elif CONV == 1

FN Key row_key(const Problem *p, i64 z, i64 r) {
  Key key;
  const INDEX row = (INDEX)r / (INDEX)p->w;
  const INDEX n = row / (INDEX)p->h;
  key.i = (INDEX)r - row * (INDEX)p->w;
  key.j = row - n * (INDEX)p->h;
  key.base = n * p->oh * p->ow * p->o + z * p->og;
  key.b = 0;
  key.y = key.j + (INDEX)p->ph;
  key.x = key.i + (INDEX)p->pw;
  return key;
}
FN Key inner_key(const Problem *p, i64 z, i64 q) {
  return tap_key(p, q, p->og);
}
FN void inner_skip(const Problem *p, Key *key, i64 count) {
  tap_skip(p, key, p->og, count);
}
// The window whose tap `inner` is at the pixel `row`.
FN i64 a_place(const Problem *p, Key row, Key inner) {
  INDEX y = row.y - inner.y, x = row.x - inner.x;
  if (y < 0 || x < 0) return -1;
  if (p->sh != 1) {
    const INDEX o = y / (INDEX)p->sh;
    if (o * (INDEX)p->sh != y) return -1;
    y = o;
  }
  if (p->sw != 1) {
    const INDEX o = x / (INDEX)p->sw;
    if (o * (INDEX)p->sw != x) return -1;
    x = o;
  }
  if (y >= p->oh || x >= p->ow) return -1;
  return row.base + inner.base + (y * p->ow + x) * p->o;
}
FN i64 b_base(const Problem *p, i64 z) { return z * p->og; }

#else

FN Key row_key(const Problem *p, i64 z, i64 r) {
  Key key = tap_key(p, r, p->cg);
  key.base += z * p->cg;
  return key;
}
FN Key inner_key(const Problem *p, i64 z, i64 q) { return window_key(p, q); }
FN void inner_skip(const Problem *p, Key *key, i64 count) {
  window_next(p, key);
}
FN i64 a_place(const Problem *p, Key row, Key inner) {
  return image_place(p, inner, row);
}
FN i64 b_base(const Problem *p, i64 z) { return z * p->og; }

#endif
