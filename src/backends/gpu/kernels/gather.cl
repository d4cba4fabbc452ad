// Elements picked by indices, which are checked.

// How memory holds indices.
#define INDEX_I32 0
#define INDEX_I64 1
#define INDEX_U8 2

FN i64 index_at(const GLOBAL u8 *indices, i32 kind, i64 i) {
  if (kind == INDEX_I32) return ((const GLOBAL i32 *)indices)[i];
  if (kind == INDEX_I64) return ((const GLOBAL i64 *)indices)[i];
  return indices[i];
}

// Row g of y, of `inner` elements, is row indices[...] of x: `n` indices are
// for each of `outer` rows of a batch.
KERNEL(FLAT_SIZE, gather_rows)
(BUF(E, y), BUF(const E, x), BUF(const u8, indices), const i32 kind,
 const i64 dim, const i64 inner, const i64 n, const i64 outer,
 const i32 narrow, const i64 items, BUF(i64, fault)) {
  AT(E, y);
  AT(const E, x);
  AT(const u8, indices);
  AT(i64, fault);
  if (ITEM >= items) return;
  i64 k, j, rest;
  const i64 g = quotient(ITEM, inner, narrow, &k);
  const i64 o = quotient(g, n, narrow, &j);
  const i64 at = quotient(o, outer, narrow, &rest) * n + j;
  const i64 row = index_at(indices, kind, at);
  if (row < 0 || row >= dim) {
    report(fault, 1, row, at, dim);
    return;
  }
  y[ITEM] = x[(o * dim + row) * inner + k];
}

KERNEL(FLAT_SIZE, check_indices)
(BUF(const u8, indices), const i32 kind, const i64 dim, const i64 n,
 BUF(i64, fault)) {
  AT(const u8, indices);
  AT(i64, fault);
  if (ITEM >= n) return;
  const i64 row = index_at(indices, kind, ITEM);
  if (row < 0 || row >= dim) report(fault, 1, row, ITEM, dim);
}

// Coordinates of the first axes of an array.
typedef struct {
  i64 dim[MAX_RANK];
  i64 stride[MAX_RANK];
  i32 depth;
  i32 kind;
} Coordinates;

// Where row i of the indices points; -1: out of range, which is reported as
// 1 + the number of the coordinate.
FN i64 place_at(const GLOBAL u8 *indices, const Coordinates *c, i64 i,
                GLOBAL i64 *fault) {
  i64 place = 0;
  for (i32 d = 0; d < c->depth; ++d) {
    const i64 at = index_at(indices, c->kind, i * c->depth + d);
    if (at < 0 || at >= c->dim[d]) {
      report(fault, d + 1, i, at, 0);
      return -1;
    }
    place += at * c->stride[d];
  }
  return place;
}

KERNEL(FLAT_SIZE, gather_places)
(BUF(E, y), BUF(const E, x), BUF(const u8, indices), const Coordinates c,
 const i64 inner, const i32 narrow, const i64 items,
 BUF(i64, fault)) {
  AT(E, y);
  AT(const E, x);
  AT(const u8, indices);
  AT(i64, fault);
  if (ITEM >= items) return;
  i64 k;
  const i64 i = quotient(ITEM, inner, narrow, &k);
  const i64 place = place_at(indices, &c, i, fault);
  if (place < 0) return;
  y[ITEM] = x[place + k];
}

KERNEL(FLAT_SIZE, check_places)
(BUF(const u8, indices), const Coordinates c, const i64 n, BUF(i64, fault)) {
  AT(const u8, indices);
  AT(i64, fault);
  if (ITEM < n) place_at(indices, &c, ITEM, fault);
}

// y holds what is not hot before; indices that name no place are none.
KERNEL(FLAT_SIZE, one_hot)
(BUF(E, y), BUF(const u8, indices), const i32 kind, const i64 depth,
 const i64 inner, const Bits on, const i64 n) {
  AT(E, y);
  AT(const u8, indices);
  if (ITEM >= n) return;
  const i64 at = index_at(indices, kind, ITEM);
  if (at < 0 || at >= depth) return;
  const i64 o = ITEM / inner;
  y[(o * depth + at) * inner + ITEM - o * inner] = element_of(on);
}

// y[x[i]] = i; y holds -1 before.
KERNEL(FLAT_SIZE, invert)
(BUF(E, y), BUF(const u8, x), const i32 kind, const i64 n, BUF(i64, fault)) {
  AT(E, y);
  AT(const u8, x);
  AT(i64, fault);
  if (ITEM >= n) return;
  const i64 at = index_at(x, kind, ITEM);
  if (at < 0 || at >= n) {
    report(fault, 1, at, ITEM, n);
    return;
  }
#if E_SIZE <= 8
  y[at] = (E)ITEM;
#endif
}

// If two name one place, one of them does not find itself there.
KERNEL(FLAT_SIZE, check_inverse)
(BUF(const u8, y), BUF(const u8, x), const i32 kind, const i64 n,
 BUF(i64, fault)) {
  AT(const u8, y);
  AT(const u8, x);
  AT(i64, fault);
  if (ITEM >= n) return;
  const i64 at = index_at(x, kind, ITEM);
  if (at < 0 || at >= n) return;
  const i64 other = index_at(y, kind, at);
  if (other != ITEM) {
    report(fault, 2, at, other > ITEM ? other : ITEM, n - 1);
  }
}
