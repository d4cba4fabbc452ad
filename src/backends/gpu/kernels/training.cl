// Updates of variables: the CPU's loops (cpu/isa/train.h). T is f32 or f64.

#if T_SINGLE
#define T_MADD(a, b, c) F32_MADD(a, b, c)
#define T_SQRT(x) F32_SQRT(x)
#else
#define T_MADD(a, b, c) ((a) * (b) + (c))
#define T_SQRT(x) F64_SQRT(x)
#endif

// What scalars are put together in.
#if HAS_F64
typedef f64 wide;
#define WIDE_SQRT(x) F64_SQRT(x)
#else
typedef f32 wide;
#define WIDE_SQRT(x) F32_SQRT(x)
#endif

// Each of these updates element i, if it is one of n.
FN void descend(GLOBAL T *w, const GLOBAL T *g, T step, i64 i, i64 n) {
  if (i >= n) return;
  w[i] = T_MADD(g[i], step, w[i]);
}

FN void gain_momentum(GLOBAL T *w, GLOBAL T *v, const GLOBAL T *g, T step,
                      T keep, i32 nesterov, i64 i, i64 n) {
  if (i >= n) return;
  const T grad = g[i];
  const T velocity = T_MADD(v[i], keep, grad);
  v[i] = velocity;
  const T move = nesterov ? T_MADD(velocity, keep, grad) : velocity;
  w[i] = T_MADD(move, step, w[i]);
}

FN void gain_keras_momentum(GLOBAL T *w, GLOBAL T *v, const GLOBAL T *g,
                            T step, T keep, i32 nesterov, i64 i, i64 n) {
  if (i >= n) return;
  const T push = g[i] * step;
  const T velocity = T_MADD(v[i], keep, push);
  v[i] = velocity;
  w[i] = w[i] + (nesterov ? T_MADD(velocity, keep, push) : velocity);
}

typedef struct {
  T rate, keep, beta1, gain1, gain2, epsilon;
} AdamScalars;

// Without weight decay `decay` is null.
FN AdamScalars adam_scalars(const GLOBAL T *beta1_power,
                            const GLOBAL T *beta2_power, const GLOBAL T *lr,
                            const GLOBAL T *beta1, const GLOBAL T *beta2,
                            const GLOBAL T *epsilon, const GLOBAL T *decay) {
  AdamScalars s;
  const wide rate = (wide)lr[0], one = (wide)1;
  s.rate = (T)(rate * WIDE_SQRT(one - (wide)beta2_power[0]) /
               (one - (wide)beta1_power[0]));
  s.keep = decay ? (T)(one - rate * (wide)decay[0]) : (T)1;
  s.beta1 = beta1[0];
  s.gain1 = (T)1 - beta1[0];
  s.gain2 = (T)1 - beta2[0];
  s.epsilon = epsilon[0];
  return s;
}

#define ADAM_SCALARS                                                  \
  adam_scalars(beta1_power, beta2_power, lr, beta1, beta2, epsilon, decay)
// One item of a group puts them together.
#define SHARED_ADAM_SCALARS(s)          \
  LOCAL_ARRAY(AdamScalars, shared, 1);  \
  if (LID == 0) shared[0] = ADAM_SCALARS; \
  BARRIER();                            \
  const AdamScalars s = shared[0];

FN void adapt(GLOBAL T *w, GLOBAL T *m, GLOBAL T *v, const GLOBAL T *g,
              AdamScalars s, i32 nesterov, i64 i, i64 n) {
  if (i >= n) return;
  const T grad = g[i];
  T mean = m[i], square = v[i];
  mean = T_MADD(grad - mean, s.gain1, mean);
  square = T_MADD(T_MADD(grad, grad, -square), s.gain2, square);
  m[i] = mean;
  v[i] = square;
  const T top = nesterov ? T_MADD(s.gain1, grad, mean * s.beta1) : mean;
  w[i] = w[i] * s.keep - s.rate * top / (T_SQRT(square) + s.epsilon);
}

typedef struct {
  T rate, gain, momentum, epsilon;
} RmsScalars;

// Not centered: mg is null.
FN void follow_squares(GLOBAL T *w, GLOBAL T *mg, GLOBAL T *ms, GLOBAL T *mom,
                       const GLOBAL T *g, RmsScalars s, i32 centered, i64 i,
                       i64 n) {
  if (i >= n) return;
  const T grad = g[i];
  T square = ms[i];
  square = T_MADD(T_MADD(grad, grad, -square), s.gain, square);
  ms[i] = square;
  T spread = square;
  if (centered) {
    T mean = mg[i];
    mean = T_MADD(grad - mean, s.gain, mean);
    mg[i] = mean;
    spread = T_MADD(-mean, mean, square);
  }
  const T move = T_MADD(mom[i], s.momentum,
                        s.rate * grad / T_SQRT(spread + s.epsilon));
  mom[i] = move;
  w[i] = w[i] - move;
}

FN void add_squares(GLOBAL T *w, GLOBAL T *accum, const GLOBAL T *g, T rate,
                    T epsilon, i64 i, i64 n) {
  if (i >= n) return;
  const T grad = g[i];
  const T sum = T_MADD(grad, grad, accum[i]);
  accum[i] = sum;
  w[i] = w[i] - rate * grad / (T_SQRT(sum) + epsilon);
}

// The update that a group is for: the last one whose first group is not after
// it. Those that are not there begin at the end of the numbers.
#define FIND_UPDATE(sizes, most)                               \
  i32 which = 0;                                               \
  for (i32 half_ = most / 2; half_ > 0; half_ /= 2) {          \
    if (sizes.first[which + half_] <= GROUP) which += half_;   \
  }

// Operands of one update, those of up to eight that share their scalars, and
// those of up to TABLE, of which a card of addresses is given a table.
#define ONE_BUF(type, x) BUF(type, x)
#define ONE_FIND(n)
#define ONE_AT(type, x) AT(type, x)
#define ONE_SIZE(n) const i64 n
#define ONE_ITEM(n) ITEM
#define ONE_OF(n) n

#define MANY_BUF(type, x)                                              \
  BUF(type, x##0), BUF(type, x##1), BUF(type, x##2), BUF(type, x##3),  \
      BUF(type, x##4), BUF(type, x##5), BUF(type, x##6), BUF(type, x##7)
#define MANY_AT(type, x)                                                  \
  AT(type, x##0); AT(type, x##1); AT(type, x##2); AT(type, x##3);         \
  AT(type, x##4); AT(type, x##5); AT(type, x##6); AT(type, x##7);         \
  GLOBAL type *x = which < 4 ? (which < 2 ? (which == 0 ? x##0 : x##1)    \
                                          : (which == 2 ? x##2 : x##3))   \
                             : (which < 6 ? (which == 4 ? x##4 : x##5)    \
                                          : (which == 6 ? x##6 : x##7));
typedef struct {
  i64 n[8];
  i64 first[8];
} Sizes;
#define MANY_FIND(sizes) FIND_UPDATE(sizes, 8)
#define MANY_SIZE(sizes) const Sizes sizes
#define MANY_ITEM(sizes) ((GROUP - sizes.first[which]) * FLAT_SIZE + LID)
#define MANY_OF(sizes) sizes.n[which]

#ifdef TABLE
#if defined(__CUDACC__)
#define TABLE_PARAMETER const __grid_constant__
#else
#define TABLE_PARAMETER const
#endif
typedef struct {
  u64 at[TABLE];
} Addresses;
typedef struct {
  i64 n[TABLE];
  i64 first[TABLE];
} TableSizes;
#define TABLE_BUF(type, x) TABLE_PARAMETER Addresses x##_column
#define TABLE_AT(type, x) GLOBAL type *x = (GLOBAL type *)x##_column.at[which]
#define TABLE_FIND(sizes) FIND_UPDATE(sizes, TABLE)
#define TABLE_SIZE(sizes) TABLE_PARAMETER TableSizes sizes
#define TABLE_ITEM(sizes) MANY_ITEM(sizes)
#define TABLE_OF(sizes) MANY_OF(sizes)
#endif

#define DEFINE_UPDATES(suffix, X)                                             \
  KERNEL(FLAT_SIZE, gradient_descent##suffix)                                 \
  (X##_BUF(T, w), BUF(const T, rate), X##_BUF(const T, g), X##_SIZE(n)) {     \
    X##_FIND(n)                                                               \
    X##_AT(T, w);                                                             \
    X##_AT(const T, g);                                                       \
    AT(const T, rate);                                                        \
    descend(w, g, -rate[0], X##_ITEM(n), X##_OF(n));                          \
  }                                                                           \
  KERNEL(FLAT_SIZE, momentum##suffix)                                         \
  (X##_BUF(T, w), X##_BUF(T, v), BUF(const T, rate), X##_BUF(const T, g),     \
   BUF(const T, keep), const i32 nesterov, X##_SIZE(n)) {                     \
    X##_FIND(n)                                                               \
    X##_AT(T, w);                                                             \
    X##_AT(T, v);                                                             \
    X##_AT(const T, g);                                                       \
    AT(const T, rate);                                                        \
    AT(const T, keep);                                                        \
    gain_momentum(w, v, g, -rate[0], keep[0], nesterov, X##_ITEM(n),          \
                  X##_OF(n));                                                 \
  }                                                                           \
  KERNEL(FLAT_SIZE, keras_momentum##suffix)                                   \
  (X##_BUF(T, w), X##_BUF(T, v), BUF(const T, rate), X##_BUF(const T, g),     \
   BUF(const T, keep), const i32 nesterov, X##_SIZE(n)) {                     \
    X##_FIND(n)                                                               \
    X##_AT(T, w);                                                             \
    X##_AT(T, v);                                                             \
    X##_AT(const T, g);                                                       \
    AT(const T, rate);                                                        \
    AT(const T, keep);                                                        \
    gain_keras_momentum(w, v, g, -rate[0], keep[0], nesterov, X##_ITEM(n),    \
                        X##_OF(n));                                           \
  }                                                                           \
  KERNEL(FLAT_SIZE, adam##suffix)                                             \
  (X##_BUF(T, w), X##_BUF(T, m), X##_BUF(T, v), BUF(const T, beta1_power),    \
   BUF(const T, beta2_power), BUF(const T, lr), BUF(const T, beta1),          \
   BUF(const T, beta2), BUF(const T, epsilon), BUF(const T, decay),           \
   X##_BUF(const T, g), const i32 nesterov, X##_SIZE(n)) {                    \
    X##_FIND(n)                                                               \
    X##_AT(T, w);                                                             \
    X##_AT(T, m);                                                             \
    X##_AT(T, v);                                                             \
    X##_AT(const T, g);                                                       \
    AT(const T, beta1_power);                                                 \
    AT(const T, beta2_power);                                                 \
    AT(const T, lr);                                                          \
    AT(const T, beta1);                                                       \
    AT(const T, beta2);                                                       \
    AT(const T, epsilon);                                                     \
    AT(const T, decay);                                                       \
    SHARED_ADAM_SCALARS(s)                                                    \
    adapt(w, m, v, g, s, nesterov, X##_ITEM(n), X##_OF(n));                   \
  }                                                                           \
  KERNEL(FLAT_SIZE, rms_prop##suffix)                                         \
  (X##_BUF(T, w), X##_BUF(T, mg), X##_BUF(T, ms), X##_BUF(T, mom),            \
   BUF(const T, lr), BUF(const T, rho), BUF(const T, momentum),               \
   BUF(const T, epsilon), X##_BUF(const T, g), const i32 centered,            \
   X##_SIZE(n)) {                                                             \
    X##_FIND(n)                                                               \
    X##_AT(T, w);                                                             \
    X##_AT(T, mg);                                                            \
    X##_AT(T, ms);                                                            \
    X##_AT(T, mom);                                                           \
    X##_AT(const T, g);                                                       \
    AT(const T, lr);                                                          \
    AT(const T, rho);                                                         \
    AT(const T, momentum);                                                    \
    AT(const T, epsilon);                                                     \
    RmsScalars s;                                                             \
    s.rate = lr[0];                                                           \
    s.gain = (T)1 - rho[0];                                                   \
    s.momentum = momentum[0];                                                 \
    s.epsilon = epsilon[0];                                                   \
    follow_squares(w, mg, ms, mom, g, s, centered, X##_ITEM(n), X##_OF(n));   \
  }                                                                           \
  KERNEL(FLAT_SIZE, adagrad##suffix)                                          \
  (X##_BUF(T, w), X##_BUF(T, accum), BUF(const T, lr),                        \
   BUF(const T, epsilon), X##_BUF(const T, g), X##_SIZE(n)) {                 \
    X##_FIND(n)                                                               \
    X##_AT(T, w);                                                             \
    X##_AT(T, accum);                                                         \
    X##_AT(const T, g);                                                       \
    AT(const T, lr);                                                          \
    AT(const T, epsilon);                                                     \
    add_squares(w, accum, g, lr[0], epsilon[0], X##_ITEM(n), X##_OF(n));      \
  }

#ifdef TABLE
DEFINE_UPDATES(_table, TABLE)
#else
DEFINE_UPDATES(, ONE)
DEFINE_UPDATES(_many, MANY)
#endif
