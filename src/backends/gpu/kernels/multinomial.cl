// Classes drawn with the probabilities softmax(logits).

// What shares are summed in.
#if HAS_F64
typedef f64 share;
// exp(x) for x <= 0, to about one unit in the last place.
FN share exp_of(share x) {
  if (!(x > -745.0)) return 0.0;
  const f64 n = F64_RINT(x * 1.4426950408889634);
  f64 r = F64_MADD(n, -6.93147180369123816490e-01, x);
  r = F64_MADD(n, -1.90821492927058770002e-10, r);
  f64 p = 1.0 / 6227020800.0;
  p = F64_MADD(p, r, 1.0 / 479001600.0);
  p = F64_MADD(p, r, 1.0 / 39916800.0);
  p = F64_MADD(p, r, 1.0 / 3628800.0);
  p = F64_MADD(p, r, 1.0 / 362880.0);
  p = F64_MADD(p, r, 1.0 / 40320.0);
  p = F64_MADD(p, r, 1.0 / 5040.0);
  p = F64_MADD(p, r, 1.0 / 720.0);
  p = F64_MADD(p, r, 1.0 / 120.0);
  p = F64_MADD(p, r, 1.0 / 24.0);
  p = F64_MADD(p, r, 1.0 / 6.0);
  p = F64_MADD(p, r, 0.5);
  p = F64_MADD(p, r * r, r) + 1.0;
  const i64 power = (i64)n, part = power >> 1;
  return p * AS_F64((part + 1023) << 52) *
         AS_F64((power - part + 1023) << 52);
}
#define SHARE_OF_WORD(w) (((f64)(w) + 0.5) * 0x1p-32)
#else
typedef f32 share;
FN share exp_of(share x) {
  if (!(x > -87.0f)) return 0.0f;
  const f32 n = F32_RINT(x * 1.44269504f);
  f32 r = F32_MADD(n, -0.693359375f, x);
  r = F32_MADD(n, 2.12194440e-4f, r);
  f32 p = 0.00139012934f;
  p = F32_MADD(p, r, 0.00836317021f);
  p = F32_MADD(p, r, 0.0416668538f);
  p = F32_MADD(p, r, 0.166665771f);
  p = F32_MADD(p, r, 0.499999996f);
  p = F32_MADD(p, r * r, r) + 1.0f;
  return p * AS_F32(((i32)n + 127) << 23);
}
#define SHARE_OF_WORD(w) (((f32)(w) + 0.5f) * 0x1p-32f)
#endif

// The larger; a NaN stays.
FN T larger(T a, T b) { return a != a ? a : b > a || b != b ? b : a; }

// A group for each row: shares[k] becomes the sum of the shares of classes 0
// to k, each item having neighbouring classes.
KERNEL(GROUP_SIZE, sum_shares)
(BUF(share, shares), BUF(const T, logits), const i64 classes,
 BUF(i64, fault)) {
  AT(share, shares);
  AT(const T, logits);
  AT(i64, fault);
  LOCAL_ARRAY(T, tops, GROUP_SIZE);
  LOCAL_ARRAY(share, sums, GROUP_SIZE);
  const i64 each = (classes + GROUP_SIZE - 1) / GROUP_SIZE;
  const i64 row = GROUP * classes, first = LID * each;
  const i64 end = first + each < classes ? first + each : classes;
  T top = logits[row];
  for (i64 k = first; k < end; ++k) top = larger(top, logits[row + k]);
  tops[LID] = top;
  BARRIER();
  for (i32 width = GROUP_SIZE / 2; width > 0; width /= 2) {
    if (LID < width) tops[LID] = larger(tops[LID], tops[LID + width]);
    BARRIER();
  }
  top = tops[0];
  const i32 finite = top - top == 0;
  if (LID == 0 && !finite) {
    report(fault, top != top ? 3 : top > 0 ? 1 : 2, GROUP, 0, 0);
  }
  share sum = 0;
  for (i64 k = first; k < end; ++k) {
    sum += exp_of((share)logits[row + k] - (share)top);
    shares[row + k] = sum;
  }
  sums[LID] = sum;
  BARRIER();
  for (i32 by = 1; by < GROUP_SIZE; by *= 2) {
    const share before = LID >= by ? sums[LID - by] : 0;
    BARRIER();
    sums[LID] += before;
    BARRIER();
  }
  const share before = LID > 0 ? sums[LID - 1] : 0;
  for (i64 k = first; k < end; ++k) shares[row + k] += before;
}

// The class in whose share of [0, total) the number lies.
KERNEL(FLAT_SIZE, draw_classes)
(BUF(u8, y), BUF(const share, shares), BUF(const u64, step), const Key key,
 const i32 wide, const i64 classes, const i64 samples, const i64 origin,
 const i64 n) {
  AT(u8, y);
  AT(const share, shares);
  AT(const u64, step);
  if (ITEM >= n) return;
  const i64 row = ITEM / samples * classes;
  const u32 word =
      random_word(key, step_of(step), (u64)origin + (u64)ITEM).w;
  const share u = SHARE_OF_WORD(word) * shares[row + classes - 1];
  i64 low = 0, high = classes - 1;
  while (low < high) {
    const i64 middle = low + (high - low) / 2;
    if (u < shares[row + middle]) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (wide) {
    ((GLOBAL i64 *)y)[ITEM] = low;
  } else {
    ((GLOBAL i32 *)y)[ITEM] = (i32)low;
  }
}
