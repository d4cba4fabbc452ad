// What generated kernels of one element per item walk over operands with
// (gpu/element_kernel.h).

#define MOST_INPUTS 16

// Rows of columns; the steps of each input in elements.
typedef struct {
  u32 columns;
  u32 unused;
  u32 row[MOST_INPUTS];
  u32 column[MOST_INPUTS];
} Rows;

// Any number of axes; the steps of four inputs.
typedef struct {
  u32 n[8];
  i64 rank;
} Axes32;
typedef struct {
  u32 by[4][8];
} Steps32;
typedef struct {
  u64 n[8];
  i64 rank;
} Axes64;
typedef struct {
  u64 by[4][8];
} Steps64;

// Elements that are only moved.
typedef struct {
  i64 a, b;
} w128;
#define w128_C w128
#define w128_LOAD TYPE_PLAIN_LOAD
#define w128_STORE TYPE_PLAIN_STORE
