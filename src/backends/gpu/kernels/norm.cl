// Batch norms: x is [groups, rows, channels]; each group has moments of its
// own, [groups, channels]. Sums over rows are made of pieces whose length is
// fixed. T is real, so T_C and real are one type, and T too unless it has 16
// bits: then only x, y and their gradients are of it.

// Element i of [rows, channels]: channel c of row r.
#define ELEMENT_BEGIN(rows, channels)                                 \
  const i64 i = ITEM;                                                 \
  if (i >= (rows) * (channels)) return;                               \
  const i64 r = i >> 32 ? i / (channels) : (u32)i / (u32)(channels);  \
  const i64 c = i - r * (channels)

// The piece of an item: channel c, rows [begin, end) of group g; its results go
// to place ITEM of [groups, pieces, channels].
#define PIECE_BEGIN                                                        \
  const i64 unit = ITEM / channels, g = unit / pieces, p = unit % pieces;  \
  const i64 c = ITEM - unit * channels;                                    \
  if (g >= groups) return;                                                 \
  const i64 begin = g * rows + p * piece;                                  \
  const i64 end = rows - p * piece < piece ? (g + 1) * rows : begin + piece

// v: the sum of EXPR over the elements e = (i, c) of the piece.
#define PIECE_SUM(v, EXPR)                \
  v = T_ZERO;                             \
  for (i64 i = begin; i < end; ++i) {     \
    const i64 e = i * channels + c;       \
    v += EXPR;                            \
  }

// Means of pieces, and sums of squared distances from them.
KERNEL(ROW_ITEMS, moment_pieces)
(BUF(const T, x), BUF(real, means), BUF(real, squares), const i64 groups,
 const i64 rows, const i64 channels, const i64 piece, const i64 pieces) {
  AT(const T, x);
  AT(real, means);
  AT(real, squares);
  PIECE_BEGIN;
  real mean, sum;
  PIECE_SUM(mean, T_LOAD(x, e));
  mean /= (real)(end - begin);
  PIECE_SUM(sum, (T_LOAD(x, e) - mean) * (T_LOAD(x, e) - mean));
  means[ITEM] = mean;
  squares[ITEM] = sum;
}

// Row: a channel of a group. batch_mean and batch_variance are those of the
// only group.
KERNEL(ROW_ITEMS, moment_fold)
(BUF(const real, means), BUF(const real, squares), BUF(const real, scale),
 BUF(real, mean), BUF(real, variance), BUF(real, factor), BUF(real, batch_mean),
 BUF(real, batch_variance), const i64 groups, const i64 rows,
 const i64 channels, const i64 piece, const i64 pieces, const i32 lanes,
 const real epsilon, const real unbiased) {
  AT(const real, means);
  AT(const real, squares);
  AT(const real, scale);
  AT(real, mean);
  AT(real, variance);
  AT(real, factor);
  AT(real, batch_mean);
  AT(real, batch_variance);
  ROW_BOX(real, box);
  ROW_BEGIN;
  const i64 g = row / channels, c = row % channels;
  const i64 at = g * pieces * channels + c, n = g < groups ? pieces : 0;
  real m, s;
#define SIZE_OF_PIECE \
  (real)(rows - i * piece < piece ? rows - i * piece : piece)
  if (rows == 0) {
    m = T_ZERO;
    s = T_ZERO;
  } else {
    ROW_FOLD(m, n, T_ADD, T_ZERO, i, means[at + i * channels] * SIZE_OF_PIECE);
    ROW_TREE(box, m, T_ADD);
  }
  m /= (real)rows;
  if (rows != 0) {
    ROW_FOLD(s, n, T_ADD, T_ZERO, i,
             squares[at + i * channels] + (means[at + i * channels] - m) *
                                              (means[at + i * channels] - m) *
                                              SIZE_OF_PIECE);
    ROW_TREE(box, s, T_ADD);
  }
  if (lane != 0 || g >= groups) return;
  s /= (real)rows;
  mean[row] = m;
  variance[row] = s;
  factor[row] = scale[c] / T_SQRT(s + epsilon);
  if (groups == 1) {
    batch_mean[c] = m;
    batch_variance[c] = s * unbiased;
  }
}

// For libraries, which say the variance as a sample has it, and want the
// inverse of the deviation.
KERNEL(FLAT_SIZE, biased_variance)
(BUF(const real, sample), BUF(real, variance), const i64 channels,
 const real share) {
  AT(const real, sample);
  AT(real, variance);
  const i64 c = ITEM;
  if (c < channels) variance[c] = sample[c] * share;
}

KERNEL(FLAT_SIZE, inverse_deviation)
(BUF(const real, variance), BUF(real, inverse), const i64 channels,
 const real epsilon) {
  AT(const real, variance);
  AT(real, inverse);
  const i64 c = ITEM;
  if (c < channels) inverse[c] = T_ONE / T_SQRT(variance[c] + epsilon);
}

// Moments that are given are results too.
KERNEL(FLAT_SIZE, given_moments)
(BUF(const real, mean), BUF(const real, variance), BUF(const real, scale),
 BUF(real, batch_mean), BUF(real, batch_variance), BUF(real, used_mean),
 BUF(real, used_variance), BUF(real, factor), const i64 channels,
 const real epsilon) {
  AT(const real, mean);
  AT(const real, variance);
  AT(const real, scale);
  AT(real, batch_mean);
  AT(real, batch_variance);
  AT(real, used_mean);
  AT(real, used_variance);
  AT(real, factor);
  const i64 c = ITEM;
  if (c >= channels) return;
  const real m = mean[c], v = variance[c];
  batch_mean[c] = m;
  used_mean[c] = m;
  batch_variance[c] = v;
  used_variance[c] = v;
  factor[c] = scale[c] / T_SQRT(v + epsilon);
}

// [groups, channels] to [channels]: sums, times a share.
KERNEL(FLAT_SIZE, join_groups)
(BUF(const real, a), BUF(const real, b), BUF(real, a_sum), BUF(real, b_sum),
 const i64 groups, const i64 channels, const real a_share, const real b_share) {
  AT(const real, a);
  AT(const real, b);
  AT(real, a_sum);
  AT(real, b_sum);
  const i64 c = ITEM;
  if (c >= channels) return;
  real sum_a = T_ZERO, sum_b = T_ZERO;
  for (i64 g = 0; g < groups; ++g) {
    sum_a += a[g * channels + c];
    sum_b += b[g * channels + c];
  }
  a_sum[c] = sum_a * a_share;
  b_sum[c] = sum_b * b_share;
}

KERNEL(FLAT_SIZE, normalise)
(BUF(const T, x), BUF(const real, mean), BUF(const real, factor),
 BUF(const real, offset), BUF(T, y), const i64 groups, const i64 rows,
 const i64 channels) {
  AT(const T, x);
  AT(const real, mean);
  AT(const real, factor);
  AT(const real, offset);
  AT(T, y);
  ELEMENT_BEGIN(groups * rows, channels);
  const i64 m = groups > 1 ? r / rows * channels + c : c;
  T_STORE(y, i, (T_LOAD(x, i) - mean[m]) * factor[m] + offset[c]);
}

// Sums of dy * h and of dy, with h = (x - mean) / sqrt(variance + epsilon).
KERNEL(ROW_ITEMS, norm_grad_pieces)
(BUF(const T, dy), BUF(const T, x), BUF(const real, mean),
 BUF(const real, variance), BUF(real, dots), BUF(real, sums), const i64 groups,
 const i64 rows, const i64 channels, const i64 piece, const i64 pieces,
 const real epsilon) {
  AT(const T, dy);
  AT(const T, x);
  AT(const real, mean);
  AT(const real, variance);
  AT(real, dots);
  AT(real, sums);
  PIECE_BEGIN;
  const real middle = mean[g * channels + c];
  real dot, sum;
  PIECE_SUM(dot, T_LOAD(dy, e) * (T_LOAD(x, e) - middle));
  PIECE_SUM(sum, T_LOAD(dy, e));
  dots[ITEM] = dot / T_SQRT(variance[g * channels + c] + epsilon);
  sums[ITEM] = sum;
}

// Row: a column of a group of pieces, whose sums go to a and b.
KERNEL(ROW_ITEMS, fold_two)
(BUF(const real, a_pieces), BUF(const real, b_pieces), BUF(real, a),
 BUF(real, b), const i64 groups, const i64 channels, const i64 pieces,
 const i32 lanes) {
  AT(const real, a_pieces);
  AT(const real, b_pieces);
  AT(real, a);
  AT(real, b);
  ROW_BOX(real, box);
  ROW_BEGIN;
  const i64 g = row / channels, c = row % channels;
  const i64 at = g * pieces * channels + c, n = g < groups ? pieces : 0;
  real v, w;
  ROW_FOLD(v, n, T_ADD, T_ZERO, i, a_pieces[at + i * channels]);
  ROW_TREE(box, v, T_ADD);
  ROW_FOLD(w, n, T_ADD, T_ZERO, i, b_pieces[at + i * channels]);
  ROW_TREE(box, w, T_ADD);
  if (lane != 0 || g >= groups) return;
  a[row] = v;
  b[row] = w;
}

// dx; dots and sums count when the moments depend on x.
KERNEL(FLAT_SIZE, norm_grad)
(BUF(const T, dy), BUF(const T, x), BUF(const real, scale),
 BUF(const real, mean), BUF(const real, variance), BUF(const real, dots),
 BUF(const real, sums), BUF(T, dx), const i64 groups, const i64 rows,
 const i64 channels, const i32 training, const real epsilon) {
  AT(const T, dy);
  AT(const T, x);
  AT(const real, scale);
  AT(const real, mean);
  AT(const real, variance);
  AT(const real, dots);
  AT(const real, sums);
  AT(T, dx);
  const real share = T_ONE / (real)rows;
  ELEMENT_BEGIN(groups * rows, channels);
  const i64 m = groups > 1 ? r / rows * channels + c : c;
  const real inverse = T_ONE / T_SQRT(variance[m] + epsilon);
  real d = T_LOAD(dy, i);
  if (training) {
    const real h = (T_LOAD(x, i) - mean[m]) * inverse;
    d -= (sums[m] + h * dots[m]) * share;
  }
  T_STORE(dx, i, d * scale[c] * inverse);
}
