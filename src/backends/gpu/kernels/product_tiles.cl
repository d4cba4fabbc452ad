// Products for GPUs: a group makes a tile of c, a step of the inner dimension
// at a time goes through local memory; an item has TILE_EACH rows and columns.

#define TILE 64
#define TILE_EACH 4
#define TILE_ITEMS 256
#define TILE_SIDE 16  // items along a tile
#if T_COMPLEX
#define TILE_K 8
#else
#define TILE_K 16
#endif
#define TILE_LOADS (TILE * TILE_K / TILE_ITEMS)
#define TILE_PITCH (TILE + 1)

KERNEL(TILE_ITEMS, product_tiles)(PRODUCT_MEMORY, const Problem p,
                                  const i64 parts, const i64 chunk) {
  AT(const T, a);
  AT(const T, b);
  AT(T, c);
  AT(ACC, sums);
  END_AT;
  LOCAL_ARRAY(ACC, tile_a, TILE_K * TILE_PITCH);
  LOCAL_ARRAY(ACC, tile_b, TILE_K * TILE_PITCH);
  const i64 tiles_m = (p.m + TILE - 1) / TILE;
  const i64 tiles_n = (p.n + TILE - 1) / TILE;
  const i64 column = GROUP / tiles_m, zs = column / tiles_n;
  const i64 r0 = (GROUP - column * tiles_m) * TILE;
  const i64 c0 = (column - zs * tiles_n) * TILE;
  const i64 z = zs / parts, part = zs - z * parts;
  const i64 begin = part * chunk;
  const i64 end = begin + chunk < p.k ? begin + chunk : p.k;
  const i64 b_from = b_base(&p, z);

  // What this item loads in each step.
  i32 a_r[TILE_LOADS], a_q[TILE_LOADS], b_c[TILE_LOADS], b_q[TILE_LOADS];
  Key rows[TILE_LOADS];
  for (i32 i = 0; i < TILE_LOADS; ++i) {
    const i32 e = LID + i * TILE_ITEMS;
    a_r[i] = p.rows_fast ? e % TILE : e / TILE_K;
    a_q[i] = p.rows_fast ? e / TILE : e % TILE_K;
    b_c[i] = p.b_col == 1 ? e % TILE : e / TILE_K;
    b_q[i] = p.b_col == 1 ? e / TILE : e % TILE_K;
    rows[i] = row_key(&p, z, r0 + a_r[i] < p.m ? r0 + a_r[i] : p.m - 1);
  }

  const i32 first_r = LID / TILE_SIDE, first_c = LID % TILE_SIDE;
  ACC sum[TILE_EACH][TILE_EACH];
  for (i32 i = 0; i < TILE_EACH; ++i) {
    for (i32 j = 0; j < TILE_EACH; ++j) sum[i][j] = ZERO_ACC;
  }
  for (i64 q0 = begin; q0 < end; q0 += TILE_K) {
    for (i32 i = 0; i < TILE_LOADS; ++i) {
      ACC x = ZERO_ACC, y = ZERO_ACC;
      if (q0 + a_q[i] < end) {
        x = load_a(a, &p, rows[i], inner_key(&p, z, q0 + a_q[i]));
      }
      if (q0 + b_q[i] < end && c0 + b_c[i] < p.n) {
        const Key inner = inner_key(&p, z, q0 + b_q[i]);
        y = TO_ACC(T_LOAD(b, b_from + inner.b + (c0 + b_c[i]) * p.b_col));
      }
      tile_a[a_q[i] * TILE_PITCH + a_r[i]] = x;
      tile_b[b_q[i] * TILE_PITCH + b_c[i]] = y;
    }
    BARRIER();
    for (i32 q = 0; q < TILE_K; ++q) {
      ACC x[TILE_EACH], y[TILE_EACH];
      for (i32 i = 0; i < TILE_EACH; ++i) {
        x[i] = tile_a[q * TILE_PITCH + first_r + i * TILE_SIDE];
        y[i] = tile_b[q * TILE_PITCH + first_c + i * TILE_SIDE];
      }
      for (i32 i = 0; i < TILE_EACH; ++i) {
        for (i32 j = 0; j < TILE_EACH; ++j) {
          sum[i][j] = ACC_MADD(x[i], y[j], sum[i][j]);
        }
      }
    }
    BARRIER();
  }
  for (i32 i = 0; i < TILE_EACH; ++i) {
    const i64 r = r0 + first_r + i * TILE_SIDE;
    for (i32 j = 0; j < TILE_EACH; ++j) {
      const i64 col = c0 + first_c + j * TILE_SIDE;
      if (r >= p.m || col >= p.n) continue;
      if (parts > 1) {
        sums[sum_place(&p, part, z, r, col)] = sum[i][j];
      } else {
        C_STORE(c_place(&p, z, r, col), col, sum[i][j]);
      }
    }
  }
}
