// Products for processors: operands are packed into panels of PANEL_ROWS rows
// and of a few vectors of columns, then an item makes a block of c of that
// size in registers. OpenCL only.

#define PANEL_ROWS 6
#define PACK_A 256  // inner indices that an item packs
#define PACK_B 32

// A piece of the product: batches, rows, columns, inner indices.
typedef struct {
  i64 z0, z1, r0, r1, n0, n1, q0, q1;
  i64 part;     // its sums are this part's; negative: they are c
  i64 columns;  // of a panel of b
} Piece;

#if T_COMPLEX
#define PACK_STORE(to, pitch, i, v) \
  ((to)[i] = (v).re, (to)[(pitch) + (i)] = (v).im)
#else
#define PACK_STORE(to, pitch, i, v) ((to)[i] = (v))
#endif

// One row of a panel: `inside` elements, then zeros.
FN void pack_row(GLOBAL SCALAR *to, GLOBAL const T *from, i64 inside,
                 i64 count, i64 step) {
  for (i64 t = 0; t < inside; ++t) {
    const ACC v = TO_ACC(T_LOAD(from, t * step));
    PACK_STORE(to, PANEL_ROWS, t * (PANEL_ROWS * PLANES), v);
  }
  for (i64 t = inside; t < count; ++t) {
    PACK_STORE(to, PANEL_ROWS, t * (PANEL_ROWS * PLANES), ZERO_ACC);
  }
}

// All rows of a panel, which lie next to each other.
FN void pack_rows(GLOBAL SCALAR *to, GLOBAL const T *from, i64 count,
                  i64 step) {
  for (i64 t = 0; t < count; ++t) {
#pragma unroll
    for (i32 i = 0; i < PANEL_ROWS; ++i) {
      const ACC v = TO_ACC(T_LOAD(from, i));
      PACK_STORE(to, PANEL_ROWS, i, v);
    }
    to += PANEL_ROWS * PLANES;
    from += step;
  }
}

KERNEL(1, product_pack_a)(BUF(const T, a), BUF(SCALAR, packed),
                          const Problem p, const Piece s) {
  AT(const T, a);
  AT(SCALAR, packed);
  const i64 panels = (s.r1 - s.r0 + PANEL_ROWS - 1) / PANEL_ROWS;
  const i64 blocks = (s.q1 - s.q0 + PACK_A - 1) / PACK_A;
  const i64 at = GROUP / blocks, z = at / panels;
  const i64 first = s.q0 + (GROUP - at * blocks) * PACK_A;
  const i64 last = first + PACK_A < s.q1 ? first + PACK_A : s.q1;
  const i64 r0 = s.r0 + (at - z * panels) * PANEL_ROWS;
  Key rows[PANEL_ROWS];
  for (i32 i = 0; i < PANEL_ROWS; ++i) {
    rows[i] = row_key(&p, s.z0 + z, r0 + i < p.m ? r0 + i : p.m - 1);
  }
  Key inner = inner_key(&p, s.z0 + z, first);
  const i64 step = a_stride(&p);
  const i32 follow =
      r0 + PANEL_ROWS <= p.m && rows_follow(&p, rows[0], PANEL_ROWS);
  GLOBAL SCALAR *to = packed + (at * (s.q1 - s.q0) + first - s.q0) *
                                   (PANEL_ROWS * PLANES);
  for (i64 q = first; q < last;) {
    const i64 run = inner_run(&p, inner);
    const i64 count = run < last - q ? run : last - q;
    for (i32 i = 0; i < PANEL_ROWS; ++i) {
      const i64 from = a_place(&p, rows[i], inner);
      if (from >= 0 && follow) {
        pack_rows(to, a + from, count, step);
        break;
      }
      pack_row(to + i, a + (from < 0 ? 0 : from), from < 0 ? 0 : count, count,
               step);
    }
    to += count * (PANEL_ROWS * PLANES);
    inner_skip(&p, &inner, count);
    q += count;
  }
}

KERNEL(1, product_pack_b)(BUF(const T, b), BUF(SCALAR, packed),
                          const Problem p, const Piece s) {
  AT(const T, b);
  AT(SCALAR, packed);
  const i32 columns = (i32)s.columns;
  const i64 panels = (s.n1 - s.n0 + columns - 1) / columns;
  const i64 blocks = (s.q1 - s.q0 + PACK_B - 1) / PACK_B;
  const i64 at = GROUP / blocks, z = at / panels;
  const i64 first = s.q0 + (GROUP - at * blocks) * PACK_B;
  const i64 last = first + PACK_B < s.q1 ? first + PACK_B : s.q1;
  const i64 c0 = s.n0 + (at - z * panels) * columns;
  const i32 here = (i32)(p.n - c0 < columns ? p.n - c0 : columns);
  Key inner = inner_key(&p, s.z0 + z, first);
  GLOBAL const T *from = b + b_base(&p, s.z0 + z) + c0 * p.b_col;
  GLOBAL SCALAR *to =
      packed + (at * (s.q1 - s.q0) + first - s.q0) * columns * PLANES;
  for (i64 q = first; q < last; ++q) {
    GLOBAL const T *row = from + inner.b;
    if (p.b_col == 1) {
      for (i32 j = 0; j < here; ++j) {
        const ACC v = TO_ACC(T_LOAD(row, j));
        PACK_STORE(to, columns, j, v);
      }
    } else {
      for (i32 j = 0; j < here; ++j) {
        const ACC v = TO_ACC(T_LOAD(row, j * p.b_col));
        PACK_STORE(to, columns, j, v);
      }
    }
    for (i32 j = here; j < columns; ++j) PACK_STORE(to, columns, j, ZERO_ACC);
    to += columns * PLANES;
    inner_skip(&p, &inner, 1);
  }
}

// Panels of one column of panels follow each other, so that b's stays near.
// What is not PACKED reads b itself: full panels of dense columns, whose inner
// elements go by strides.
#define PANEL_BEGIN(NV, PACKED)                                             \
  AT(const SCALAR, pa);                                                     \
  AT(const SCALAR, pb);                                                     \
  AT(T, c);                                                                 \
  AT(ACC, sums);                                                            \
  END_AT;                                                                   \
  const i64 inner = s.q1 - s.q0, columns = NV * LANES;                      \
  const i64 panels_m = (s.r1 - s.r0 + PANEL_ROWS - 1) / PANEL_ROWS;         \
  const i64 panels_n = (s.n1 - s.n0 + columns - 1) / columns;               \
  const i64 at_b = GROUP / panels_m, row = GROUP - at_b * panels_m;         \
  const i64 z = at_b / panels_n;                                            \
  const i64 r0 = s.r0 + row * PANEL_ROWS;                                   \
  const i64 c0 = s.n0 + (at_b - z * panels_n) * columns;                    \
  GLOBAL const SCALAR *x =                                                  \
      pa + (z * panels_m + row) * inner * (PANEL_ROWS * PLANES);            \
  GLOBAL const SCALAR *y =                                                  \
      PACKED ? pb + at_b * inner * (columns * PLANES)                       \
             : pb + b_base(&p, s.z0 + z) +                                  \
                   inner_key(&p, s.z0 + z, s.q0).b + c0;                    \
  const i64 pitch = PACKED ? columns * PLANES : b_stride(&p)

#define PANEL_END(NV, VALUE)                                              \
  const i64 end = p.n - c0 < columns ? p.n - c0 : columns;                \
  for (i32 i = 0; i < PANEL_ROWS; ++i) {                                  \
    if (r0 + i >= s.r1) break;                                            \
    if (s.part >= 0) {                                                    \
      GLOBAL ACC *to = sums + sum_place(&p, s.part, s.z0 + z, r0 + i, c0); \
      for (i64 j = 0; j < end; ++j) to[j] = VALUE;                        \
    } else {                                                              \
      const i64 to = c_place(&p, s.z0 + z, r0 + i, c0);                   \
      for (i64 j = 0; j < end; ++j) C_STORE(to + j, c0 + j, VALUE);       \
    }                                                                     \
  }

#define PANEL_PARAMETERS                                            \
  (BUF(const SCALAR, pa), BUF(const SCALAR, pb), BUF(T, c),         \
   BUF(ACC, sums) END_MEMORY, const Problem p, const Piece s)

#if T_COMPLEX

#define PANEL(name, NV, PACKED)                                                \
  KERNEL(1, name) PANEL_PARAMETERS {                                   \
    PANEL_BEGIN(NV, PACKED);                                                   \
    VEC re[PANEL_ROWS], im[PANEL_ROWS];                                \
    _Pragma("unroll") for (i32 i = 0; i < PANEL_ROWS; ++i) {           \
      re[i] = (VEC)0;                                                  \
      im[i] = (VEC)0;                                                  \
    }                                                                  \
    for (i64 q = 0; q < inner; ++q) {                                  \
      const VEC u = VLOAD(0, y), v = VLOAD(0, y + LANES);              \
      _Pragma("unroll") for (i32 i = 0; i < PANEL_ROWS; ++i) {         \
        const VEC f = (VEC)x[i], g = (VEC)x[PANEL_ROWS + i];           \
        re[i] = VEC_MADD(-g, v, VEC_MADD(f, u, re[i]));                \
        im[i] = VEC_MADD(g, u, VEC_MADD(f, v, im[i]));                 \
      }                                                                \
      x += PANEL_ROWS * PLANES;                                        \
      y += pitch;                                                      \
    }                                                                  \
    SCALAR out_re[PANEL_ROWS][LANES], out_im[PANEL_ROWS][LANES];       \
    for (i32 i = 0; i < PANEL_ROWS; ++i) {                             \
      VSTORE(re[i], 0, out_re[i]);                                     \
      VSTORE(im[i], 0, out_im[i]);                                     \
    }                                                                  \
    PANEL_END(NV, CONCAT_MAKE(T)(out_re[i][j], out_im[i][j]))          \
  }
#define CONCAT_MAKE(t) CONCAT_MAKE_(t)
#define CONCAT_MAKE_(t) t##_make
PANEL(product_panels_1, 1, 1)

#else

// Vectors of a row that are kept in registers at a time.
#if defined(__AVX512F__)
#define STRIP(NV) (NV)
#else
#define STRIP(NV) 1
#endif

#define PANEL(name, NV, PACKED)                                                \
  KERNEL(1, name) PANEL_PARAMETERS {                                       \
    PANEL_BEGIN(NV, PACKED);                                                   \
    SCALAR out[PANEL_ROWS][NV * LANES];                                    \
    for (i32 strip = 0; strip < NV; strip += STRIP(NV)) {                  \
      GLOBAL const SCALAR *f = x, *g = y + strip * LANES;                  \
      VEC sum[PANEL_ROWS][STRIP(NV)];                                      \
      _Pragma("unroll") for (i32 i = 0; i < PANEL_ROWS; ++i) {             \
        _Pragma("unroll") for (i32 v = 0; v < STRIP(NV); ++v) {            \
          sum[i][v] = (VEC)0;                                              \
        }                                                                  \
      }                                                                    \
      for (i64 q = 0; q < inner; ++q) {                                    \
        VEC u[STRIP(NV)];                                                  \
        _Pragma("unroll") for (i32 v = 0; v < STRIP(NV); ++v) {            \
          u[v] = VLOAD(0, g + v * LANES);                                  \
        }                                                                  \
        _Pragma("unroll") for (i32 i = 0; i < PANEL_ROWS; ++i) {           \
          const VEC e = (VEC)f[i];                                         \
          _Pragma("unroll") for (i32 v = 0; v < STRIP(NV); ++v) {          \
            sum[i][v] = VEC_MADD(e, u[v], sum[i][v]);                      \
          }                                                                \
        }                                                                  \
        f += PANEL_ROWS;                                                   \
        g += pitch;                                                        \
      }                                                                    \
      _Pragma("unroll") for (i32 i = 0; i < PANEL_ROWS; ++i) {             \
        _Pragma("unroll") for (i32 v = 0; v < STRIP(NV); ++v) {            \
          VSTORE(sum[i][v], 0, out[i] + (strip + v) * LANES);              \
        }                                                                  \
      }                                                                    \
    }                                                                      \
    PANEL_END(NV, out[i][j])                                               \
  }
PANEL(product_panels_1, 1, 1)
PANEL(product_panels_2, 2, 1)
PANEL(product_panels_4, 4, 1)
#if DOT_VECTORS
PANEL(product_rows_1, 1, 0)
PANEL(product_rows_4, 4, 0)
#endif

#endif
