// Elements from places of one array to places of another.

#define TILE 32

// n[0..rank-1] elements, walked in both arrays; rank is 1 at least.
typedef struct {
  i64 n[MAX_RANK];
  i64 to[MAX_RANK];
  i64 from[MAX_RANK];
  i64 to_start;
  i64 from_start;
  i32 rank;
  i32 narrow;
} Move;

// Moves *to and *from to element i of the axes before axis `end`.
FN void walk_to(const Move *m, i32 end, i64 i, i64 *to, i64 *from) {
  for (i32 d = end - 1; d >= 0; --d) {
    i64 r = i;
    if (d > 0) i = quotient(i, m->n[d], m->narrow, &r);
    *to += r * m->to[d];
    *from += r * m->from[d];
  }
}

KERNEL(FLAT_SIZE, move_elements)
(BUF(E, y), BUF(const E, x), const Move m, const i64 items) {
  AT(E, y);
  AT(const E, x);
  if (ITEM >= items) return;
  i64 to = m.to_start, from = m.from_start;
  walk_to(&m, m.rank, ITEM, &to, &from);
  y[to] = x[from];
}

// Moves where the last axis but one is dense in x and the last in y: squares of
// TILE x TILE elements.
KERNEL(GROUP_SIZE, transpose_tiles)
(BUF(E, y), BUF(const E, x), const Move m) {
  AT(E, y);
  AT(const E, x);
  LOCAL_ARRAY(E, tile, TILE * (TILE + 1));
  const i64 rows = m.n[m.rank - 2], cols = m.n[m.rank - 1];
  i64 i = GROUP, row, col;
  i = quotient(i, (cols + TILE - 1) / TILE, m.narrow, &col);
  i = quotient(i, (rows + TILE - 1) / TILE, m.narrow, &row);
  i64 to = m.to_start, from = m.from_start;
  walk_to(&m, m.rank - 2, i, &to, &from);
  const i32 lane = LID % TILE, line = LID / TILE;
  row *= TILE;
  col *= TILE;
  for (i32 j = line; j < TILE; j += GROUP_SIZE / TILE) {
    if (row + lane < rows && col + j < cols) {
      tile[j * (TILE + 1) + lane] =
          x[from + row + lane + (col + j) * m.from[m.rank - 1]];
    }
  }
  BARRIER();
  for (i32 j = line; j < TILE; j += GROUP_SIZE / TILE) {
    if (row + j < rows && col + lane < cols) {
      y[to + (row + j) * m.to[m.rank - 2] + col + lane] =
          tile[lane * (TILE + 1) + j];
    }
  }
}

// Which place of the input an axis shows.
#define SHOW_SHIFTED 0    // o + shift, where there is one
#define SHOW_REFLECTED 1  // the same, mirrored at the edges' elements
#define SHOW_SYMMETRIC 2  // ... at the edges
#define SHOW_REVERSED 3
#define SHOW_WRAPPED 4  // o + shift, round and round; shift is not negative

typedef struct {
  i64 n[MAX_RANK];   // of the output
  i64 in[MAX_RANK];  // of the input
  i64 stride[MAX_RANK];
  i64 shift[MAX_RANK];
  i32 how[MAX_RANK];
  i32 rank;
  i32 narrow;
} Places;

// The place that place o of axis d shows; -1: none.
FN i64 shown(const Places *p, i32 d, i64 o) {
  const i64 n = p->in[d], at = o + p->shift[d];
  const i32 how = p->how[d];
  if (how == SHOW_REVERSED) return n - 1 - o;
  if (how == SHOW_WRAPPED) {
    if (at < n) return at;
    i64 rest;
    quotient(at, n, p->narrow, &rest);
    return rest;
  }
  if (at >= 0 && at < n) return at;
  if (how == SHOW_SHIFTED) return -1;
  const i64 edge = how == SHOW_SYMMETRIC ? 1 : 0;
  return at < 0 ? -at - edge : 2 * n - 2 - at + edge;
}

KERNEL(FLAT_SIZE, show_elements)
(BUF(E, y), BUF(const E, x), const Places p, const Bits none,
 const i64 items) {
  AT(E, y);
  AT(const E, x);
  if (ITEM >= items) return;
  i64 i = ITEM, from = 0;
  i32 shows = 1;
  for (i32 d = p.rank - 1; d >= 0; --d) {
    i64 r = i;
    if (d > 0) i = quotient(i, p.n[d], p.narrow, &r);
    const i64 place = shown(&p, d, r);
    if (place < 0) shows = 0;
    from += place * p.stride[d];
  }
  if (shows) {
    y[ITEM] = x[from];
  } else {
    y[ITEM] = element_of(none);
  }
}

KERNEL(FLAT_SIZE, fill_elements)
(BUF(E, y), const Bits value, const i64 n) {
  AT(E, y);
  if (ITEM < n) y[ITEM] = element_of(value);
}

// The two may be the same memory.
KERNEL(FLAT_SIZE, copy_elements)
(BUF(E, y), BUF(const E, x), const i64 n) {
  AT(E, y);
  AT(const E, x);
  if (ITEM < n) y[ITEM] = x[ITEM];
}

// What is known when the recipe is made.
typedef struct {
  u8 b[64];
} Bytes64;

KERNEL(FLAT_SIZE, put_bytes)
(BUF(u8, y), const Bytes64 bytes, const i64 n) {
  AT(u8, y);
  if (ITEM < n) y[ITEM] = bytes.b[ITEM];
}
