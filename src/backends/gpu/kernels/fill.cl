// Fills memory with one value, by the size of an element.

#define FILL_OF(name, type)                               \
  KERNEL(FLAT_SIZE, name)                                 \
  (BUF(type, y), const i64 n, const u64 low) {            \
    AT(type, y);                                          \
    const i64 i = ITEM;                                   \
    if (i < n) y[i] = (type)low;                          \
  }
FILL_OF(fill_1, u8)
FILL_OF(fill_2, u16)
FILL_OF(fill_4, u32)
FILL_OF(fill_8, u64)

// Words of 8 bytes, two of which are an element.
KERNEL(FLAT_SIZE, fill_16)
(BUF(u64, y), const i64 n, const u64 low, const u64 high) {
  AT(u64, y);
  const i64 i = ITEM;
  if (i < n) y[i] = i % 2 == 0 ? low : high;
}
