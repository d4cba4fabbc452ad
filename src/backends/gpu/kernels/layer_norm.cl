// Layer norms: rows of the last axis. Behind norm.cl.

KERNEL(ROW_ITEMS, layer_norm)
(BUF(const T, x), BUF(const real, scale), BUF(const real, offset), BUF(T, y),
 BUF(real, mean), BUF(real, rstd), const i64 rows, const i64 length,
 const i32 lanes, const real epsilon) {
  AT(const T, x);
  AT(const real, scale);
  AT(const real, offset);
  AT(T, y);
  AT(real, mean);
  AT(real, rstd);
  ROW_BOX(real, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  real m, s;
  ROW_FOLD(m, n, T_ADD, T_ZERO, i, T_LOAD(x, at + i));
  ROW_TREE(box, m, T_ADD);
  m /= (real)length;
  ROW_FOLD(s, n, T_ADD, T_ZERO, i,
           (T_LOAD(x, at + i) - m) * (T_LOAD(x, at + i) - m));
  ROW_TREE(box, s, T_ADD);
  const real inverse = T_ONE / T_SQRT(s / (real)length + epsilon);
  for (i64 i = lane; i < n; i += lanes) {
    T_STORE(y, at + i,
            (T_LOAD(x, at + i) - m) * inverse * scale[i] + offset[i]);
  }
  if (lane != 0 || row >= rows) return;
  mean[row] = m;
  rstd[row] = inverse;
}

// dx = rstd (k - mean(k) - h mean(k h)), k = dy scale, h = (x - mean) rstd.
KERNEL(ROW_ITEMS, layer_norm_grad)
(BUF(const T, dy), BUF(const T, x), BUF(const real, scale),
 BUF(const real, mean), BUF(const real, rstd), BUF(T, dx), const i64 rows,
 const i64 length, const i32 lanes) {
  AT(const T, dy);
  AT(const T, x);
  AT(const real, scale);
  AT(const real, mean);
  AT(const real, rstd);
  AT(T, dx);
  ROW_BOX(real, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  real m = T_ZERO, inverse = T_ZERO;
  if (row < rows) {
    m = mean[row];
    inverse = rstd[row];
  }
  real sum, dot;
  ROW_FOLD(sum, n, T_ADD, T_ZERO, i, T_LOAD(dy, at + i) * scale[i]);
  ROW_TREE(box, sum, T_ADD);
  ROW_FOLD(dot, n, T_ADD, T_ZERO, i,
           T_LOAD(dy, at + i) * scale[i] * ((T_LOAD(x, at + i) - m) * inverse));
  ROW_TREE(box, dot, T_ADD);
  sum /= (real)length;
  dot /= (real)length;
  for (i64 i = lane; i < n; i += lanes) {
    const real h = (T_LOAD(x, at + i) - m) * inverse;
    T_STORE(dx, at + i,
            inverse * (T_LOAD(dy, at + i) * scale[i] - sum - h * dot));
  }
}

// Sums over rows of dy h and of dy, in pieces.
KERNEL(ROW_ITEMS, layer_norm_pieces)
(BUF(const T, dy), BUF(const T, x), BUF(const real, mean),
 BUF(const real, rstd), BUF(real, dots), BUF(real, sums), const i64 groups,
 const i64 rows, const i64 channels, const i64 piece, const i64 pieces) {
  AT(const T, dy);
  AT(const T, x);
  AT(const real, mean);
  AT(const real, rstd);
  AT(real, dots);
  AT(real, sums);
  PIECE_BEGIN;
  real dot, sum;
  PIECE_SUM(dot, T_LOAD(dy, e) * ((T_LOAD(x, e) - mean[i]) * rstd[i]));
  PIECE_SUM(sum, T_LOAD(dy, e));
  dots[ITEM] = dot;
  sums[ITEM] = sum;
}
