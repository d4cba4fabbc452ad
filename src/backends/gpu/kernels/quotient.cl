// Quotients for finding the element of an item.

// i / d and the rest. `narrow`: both are below 2^31.
FN i64 quotient(i64 i, i64 d, i32 narrow, i64 *rest) {
  if (narrow) {
    const u32 q = (u32)i / (u32)d;
    *rest = (i64)((u32)i - q * (u32)d);
    return (i64)q;
  }
  const i64 q = i / d;
  *rest = i - q * d;
  return q;
}
