// Gradients of what repeats elements: each is the sum of its copies.

// Element i of y is the sum over `copies` of x, walked from its place.
KERNEL(FLAT_SIZE, sum_copies)
(BUF(T, y), BUF(const T, x), const Strided places, const Strided copies,
 const i64 n, const i64 m) {
  AT(T, y);
  AT(const T, x);
  if (ITEM >= n) return;
  const i64 at = offset_of(&places, ITEM);
  T_C sum = T_ZERO;
  for (i64 j = 0; j < m; ++j) {
    sum = T_ADD(sum, T_LOAD(x, at + offset_of(&copies, j)));
  }
  T_STORE(y, ITEM, sum);
}

// With a group for each element.
KERNEL(GROUP_SIZE, sum_many_copies)
(BUF(T, y), BUF(const T, x), const Strided places, const Strided copies,
 const i64 m) {
  AT(T, y);
  AT(const T, x);
  LOCAL_ARRAY(T_C, sums, GROUP_SIZE);
  const i64 at = offset_of(&places, GROUP);
  T_C sum = T_ZERO;
  for (i64 j = LID; j < m; j += GROUP_SIZE) {
    sum = T_ADD(sum, T_LOAD(x, at + offset_of(&copies, j)));
  }
  sums[LID] = sum;
  BARRIER();
  for (i32 width = GROUP_SIZE / 2; width > 0; width /= 2) {
    if (LID < width) sums[LID] = T_ADD(sums[LID], sums[LID + width]);
    BARRIER();
  }
  if (LID == 0) T_STORE(y, GROUP, sums[0]);
}

typedef struct {
  i64 n[MAX_RANK];  // of what was padded
  i64 before[MAX_RANK];
  i64 padded[MAX_RANK];
  i64 stride[MAX_RANK];  // of the padded array
  i32 rank;
  i32 edge;  // 1: the edges' elements have mirror images, too
} Mirrors;

// The place of image `which` (0: itself) of place p of axis d; -1: none.
FN i64 image_of(const Mirrors *m, i32 d, i64 p, i32 which) {
  if (which == 0) return p + m->before[d];
  const i64 at = which == 1 ? -p - m->edge : 2 * m->n[d] - 2 + m->edge - p;
  const i64 o = at + m->before[d];
  if (which == 1) return at < 0 && o >= 0 ? o : -1;
  return at >= m->n[d] && o < m->padded[d] ? o : -1;
}

#if !T_COMPLEX
KERNEL(FLAT_SIZE, sum_mirrored)
(BUF(T, dx), BUF(const T, dy), const Mirrors m, const i64 n) {
  AT(T, dx);
  AT(const T, dy);
  if (ITEM >= n) return;
  i32 images = 1;
  for (i32 d = 0; d < m.rank; ++d) images *= 3;
  T_C sum = T_ZERO;
  for (i32 image = 0; image < images; ++image) {
    i64 rest = ITEM, at = 0;
    i32 which = image;
    for (i32 d = m.rank - 1; d >= 0 && at >= 0; --d) {
      const i64 q = rest / m.n[d];
      const i64 o = image_of(&m, d, rest - q * m.n[d], which % 3);
      at = o < 0 ? -1 : at + o * m.stride[d];
      rest = q;
      which /= 3;
    }
    if (at >= 0) sum = T_ADD(sum, T_LOAD(dy, at));
  }
  T_STORE(dx, ITEM, sum);
}
#endif
