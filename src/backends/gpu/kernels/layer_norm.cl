// Layer norms: rows of the last axis. Behind norm.cl.

KERNEL(ROW_ITEMS, layer_norm)
(BUF(const T, x), BUF(const T, scale), BUF(const T, offset), BUF(T, y),
 BUF(T, mean), BUF(T, rstd), const i64 rows, const i64 length, const i32 lanes,
 const real epsilon) {
  AT(const T, x);
  AT(const T, scale);
  AT(const T, offset);
  AT(T, y);
  AT(T, mean);
  AT(T, rstd);
  ROW_BOX(T, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  T m, s;
  ROW_FOLD(m, n, T_ADD, T_ZERO, i, x[at + i]);
  ROW_TREE(box, m, T_ADD);
  m /= (T)length;
  ROW_FOLD(s, n, T_ADD, T_ZERO, i, (x[at + i] - m) * (x[at + i] - m));
  ROW_TREE(box, s, T_ADD);
  const T inverse = T_ONE / T_SQRT(s / (T)length + epsilon);
  for (i64 i = lane; i < n; i += lanes) {
    y[at + i] = (x[at + i] - m) * inverse * scale[i] + offset[i];
  }
  if (lane != 0 || row >= rows) return;
  mean[row] = m;
  rstd[row] = inverse;
}

// dx = rstd (k - mean(k) - h mean(k h)), k = dy scale, h = (x - mean) rstd.
KERNEL(ROW_ITEMS, layer_norm_grad)
(BUF(const T, dy), BUF(const T, x), BUF(const T, scale), BUF(const T, mean),
 BUF(const T, rstd), BUF(T, dx), const i64 rows, const i64 length,
 const i32 lanes) {
  AT(const T, dy);
  AT(const T, x);
  AT(const T, scale);
  AT(const T, mean);
  AT(const T, rstd);
  AT(T, dx);
  ROW_BOX(T, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  T m = T_ZERO, inverse = T_ZERO;
  if (row < rows) {
    m = mean[row];
    inverse = rstd[row];
  }
  T sum, dot;
  ROW_FOLD(sum, n, T_ADD, T_ZERO, i, dy[at + i] * scale[i]);
  ROW_TREE(box, sum, T_ADD);
  ROW_FOLD(dot, n, T_ADD, T_ZERO, i,
           dy[at + i] * scale[i] * ((x[at + i] - m) * inverse));
  ROW_TREE(box, dot, T_ADD);
  sum /= (T)length;
  dot /= (T)length;
  for (i64 i = lane; i < n; i += lanes) {
    const T h = (x[at + i] - m) * inverse;
    dx[at + i] = inverse * (dy[at + i] * scale[i] - sum - h * dot);
  }
}

// Sums over rows of dy h and of dy, in pieces.
KERNEL(ROW_ITEMS, layer_norm_pieces)
(BUF(const T, dy), BUF(const T, x), BUF(const T, mean), BUF(const T, rstd),
 BUF(T, dots), BUF(T, sums), const i64 groups, const i64 rows,
 const i64 channels, const i64 piece, const i64 pieces) {
  AT(const T, dy);
  AT(const T, x);
  AT(const T, mean);
  AT(const T, rstd);
  AT(T, dots);
  AT(T, sums);
  PIECE_BEGIN;
  T dot[ROW_WIDTH], sum[ROW_WIDTH];
  PIECE_SUM(dot, dy[e] * ((x[e] - mean[i]) * rstd[i]));
  PIECE_SUM(sum, dy[e]);
  for (i32 j = 0; j < width; ++j) {
    dots[at + j] = dot[j];
    sums[at + j] = sum[j];
  }
}
