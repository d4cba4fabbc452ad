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

// The elements of one item.
#define EACH_ELEMENT(i, n)                           \
  const i64 first_##i = ITEM * RUN;                  \
  if (first_##i >= n) return;                        \
  const i64 end_##i = first_##i + run_length(first_##i, n); \
  for (i64 i = first_##i; i < end_##i; ++i)

KERNEL(FLAT_SIZE, gradient_descent)
(BUF(T, w), BUF(const T, rate), BUF(const T, g), const i64 n) {
  AT(T, w);
  AT(const T, rate);
  AT(const T, g);
  const T step = -rate[0];
  EACH_ELEMENT(i, n) { w[i] = T_MADD(g[i], step, w[i]); }
}

KERNEL(FLAT_SIZE, momentum)
(BUF(T, w), BUF(T, v), BUF(const T, rate), BUF(const T, g),
 BUF(const T, keeps), const i32 nesterov, const i64 n) {
  AT(T, w);
  AT(T, v);
  AT(const T, rate);
  AT(const T, g);
  AT(const T, keeps);
  const T step = -rate[0], keep = keeps[0];
  EACH_ELEMENT(i, n) {
    const T grad = g[i];
    const T velocity = T_MADD(v[i], keep, grad);
    v[i] = velocity;
    const T move = nesterov ? T_MADD(velocity, keep, grad) : velocity;
    w[i] = T_MADD(move, step, w[i]);
  }
}

KERNEL(FLAT_SIZE, keras_momentum)
(BUF(T, w), BUF(T, v), BUF(const T, rate), BUF(const T, g),
 BUF(const T, keeps), const i32 nesterov, const i64 n) {
  AT(T, w);
  AT(T, v);
  AT(const T, rate);
  AT(const T, g);
  AT(const T, keeps);
  const T step = -rate[0], keep = keeps[0];
  EACH_ELEMENT(i, n) {
    const T push = g[i] * step;
    const T velocity = T_MADD(v[i], keep, push);
    v[i] = velocity;
    w[i] = w[i] + (nesterov ? T_MADD(velocity, keep, push) : velocity);
  }
}

// The scalars of Adam; decay may be null.
typedef struct {
  T rate, keep, beta1, gain1, gain2, epsilon;
} AdamScalars;

FN AdamScalars adam_scalars(const GLOBAL T *beta1_power,
                            const GLOBAL T *beta2_power, const GLOBAL T *lr,
                            const GLOBAL T *beta1, const GLOBAL T *beta2,
                            const GLOBAL T *epsilon, const GLOBAL T *decay,
                            i32 decays) {
  AdamScalars s;
  const wide rate = (wide)lr[0], one = (wide)1;
  s.rate = (T)(rate * WIDE_SQRT(one - (wide)beta2_power[0]) /
               (one - (wide)beta1_power[0]));
  s.keep = decays ? (T)(one - rate * (wide)decay[0]) : (T)1;
  s.beta1 = beta1[0];
  s.gain1 = (T)1 - beta1[0];
  s.gain2 = (T)1 - beta2[0];
  s.epsilon = epsilon[0];
  return s;
}

KERNEL(FLAT_SIZE, adam)
(BUF(T, w), BUF(T, m), BUF(T, v), BUF(const T, beta1_power),
 BUF(const T, beta2_power), BUF(const T, lr), BUF(const T, beta1),
 BUF(const T, beta2), BUF(const T, epsilon), BUF(const T, decay),
 BUF(const T, g), const i32 decays, const i32 nesterov, const i64 n) {
  AT(T, w);
  AT(T, m);
  AT(T, v);
  AT(const T, beta1_power);
  AT(const T, beta2_power);
  AT(const T, lr);
  AT(const T, beta1);
  AT(const T, beta2);
  AT(const T, epsilon);
  AT(const T, decay);
  AT(const T, g);
#if IS_CPU
  const AdamScalars s = adam_scalars(beta1_power, beta2_power, lr, beta1,
                                     beta2, epsilon, decay, decays);
#else
  LOCAL_ARRAY(AdamScalars, shared, 1);
  if (LID == 0) {
    shared[0] = adam_scalars(beta1_power, beta2_power, lr, beta1, beta2,
                             epsilon, decay, decays);
  }
  BARRIER();
  const AdamScalars s = shared[0];
#endif
  EACH_ELEMENT(i, n) {
    const T grad = g[i];
    T mean = m[i], square = v[i];
    mean = T_MADD(grad - mean, s.gain1, mean);
    square = T_MADD(T_MADD(grad, grad, -square), s.gain2, square);
    m[i] = mean;
    v[i] = square;
    const T top = nesterov ? T_MADD(s.gain1, grad, mean * s.beta1) : mean;
    w[i] = w[i] * s.keep - s.rate * top / (T_SQRT(square) + s.epsilon);
  }
}

KERNEL(FLAT_SIZE, rms_prop)
(BUF(T, w), BUF(T, mg), BUF(T, ms), BUF(T, mom), BUF(const T, lr),
 BUF(const T, rho), BUF(const T, momentums), BUF(const T, epsilons),
 BUF(const T, g), const i32 centered, const i64 n) {
  AT(T, w);
  AT(T, mg);
  AT(T, ms);
  AT(T, mom);
  AT(const T, lr);
  AT(const T, rho);
  AT(const T, momentums);
  AT(const T, epsilons);
  AT(const T, g);
  const T rate = lr[0], epsilon = epsilons[0], momentum = momentums[0];
  const T gain = (T)1 - rho[0];
  EACH_ELEMENT(i, n) {
    const T grad = g[i];
    T square = ms[i];
    square = T_MADD(T_MADD(grad, grad, -square), gain, square);
    ms[i] = square;
    T spread = square;
    if (centered) {
      T mean = mg[i];
      mean = T_MADD(grad - mean, gain, mean);
      mg[i] = mean;
      spread = T_MADD(-mean, mean, square);
    }
    const T move = T_MADD(mom[i], momentum,
                          rate * grad / T_SQRT(spread + epsilon));
    mom[i] = move;
    w[i] = w[i] - move;
  }
}

KERNEL(FLAT_SIZE, adagrad)
(BUF(T, w), BUF(T, accum), BUF(const T, lr), BUF(const T, epsilons),
 BUF(const T, g), const i64 n) {
  AT(T, w);
  AT(T, accum);
  AT(const T, lr);
  AT(const T, epsilons);
  AT(const T, g);
  const T rate = lr[0], epsilon = epsilons[0];
  EACH_ELEMENT(i, n) {
    const T grad = g[i];
    const T sum = T_MADD(grad, grad, accum[i]);
    accum[i] = sum;
    w[i] = w[i] - rate * grad / (T_SQRT(sum) + epsilon);
  }
}
