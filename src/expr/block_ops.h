// BlockOps: the loops of one instruction set that run expressions.
//
// Each computes a block of at most kBlock elements, or any number; operands
// are dense arrays of any alignment, and the result may be an operand of its
// own size. An element's value does not depend on its place. A backend
// supplies the table; it needs a loop for every dtype of every code.

#ifndef BERTH_EXPR_BLOCK_OPS_H_
#define BERTH_EXPR_BLOCK_OPS_H_

#include <cstddef>
#include <cstdint>

#include "expr/code.h"

namespace berth::expr {

inline constexpr int kBlock = 256;

// y[n] = f(a[n], b[n], c[n]); operands that f lacks are ignored.
using BlockFn = void (*)(const void* a, const void* b, const void* c, void* y,
                         int64_t n);

// Two float32 codes in one loop, the first inside: g(f(a, b), c), or
// g(c, f(a, b)) for those whose operand stands on the right.
struct FusedPair {
  OpCode first = OpCode::kCount;
  OpCode second = OpCode::kCount;
  bool right = false;
  BlockFn fn = nullptr;
};

inline constexpr int kMaxPairs = 24;

struct BlockOps {
  // By code and type_index() of the operand that selects the loop.
  BlockFn fn[kNumCodes][kNumTypes];
  // By operand and result.
  BlockFn cast[kNumTypes][kNumTypes];
  FusedPair pairs[kMaxPairs];
  // y[n] = *x for elements of `size` bytes: 1, 4 or 8
  void (*fill)(const void* x, void* y, size_t size, int64_t n);
  // Copies past the caches.
  void (*stream)(const void* x, void* y, int64_t bytes);
  // Waits for streamed bytes before others may read them.
  void (*fence)();
};

}  // namespace berth::expr

#endif  // BERTH_EXPR_BLOCK_OPS_H_
