// Elements that are only moved, of E_SIZE bytes, and how items walk them.

#if E_SIZE == 1
typedef u8 E;
#elif E_SIZE == 2
typedef u16 E;
#elif E_SIZE == 4
typedef u32 E;
#elif E_SIZE == 8
typedef u64 E;
#else
typedef struct {
  u64 lo, hi;
} E;
#endif

// The bits of one element.
typedef struct {
  u64 lo, hi;
} Bits;

FN E element_of(Bits b) {
#if E_SIZE == 16
  E e;
  e.lo = b.lo;
  e.hi = b.hi;
  return e;
#else
  return (E)b.lo;
#endif
}
