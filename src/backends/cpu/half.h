// Conversion of bfloat16 and float16 to float32 for the float32 kernels and
// back: per-thread memory, and operands as float32. Re-entrant.

#ifndef BERTH_BACKENDS_CPU_HALF_H_
#define BERTH_BACKENDS_CPU_HALF_H_

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/scratch.h"

namespace berth::cpu {

// Elements of a block that fits, with its neighbours, the first-level cache.
inline constexpr int64_t kHalfBlock = 4096;

inline bool is_half(DType d) { return (kHalfTypes & dtype_bit(d)) != 0; }

inline void widen_half(DType dtype, const uint16_t* x, float* y, int64_t n) {
  const Loops& l = loops();
  (dtype == bfloat16 ? l.widen_bfloat16 : l.widen_float16)(x, y, n);
}
inline void round_half(DType dtype, const float* x, uint16_t* y, int64_t n) {
  const Loops& l = loops();
  (dtype == bfloat16 ? l.round_bfloat16 : l.round_float16)(x, y, n);
}

// Floats that the thread keeps for its next call.
using HalfFloats = reference::ScratchArray<float>;

// Returns the address of element `i` of a view.
inline void* half_place(const View& v, int64_t i) {
  return v.as<std::byte>() + i * static_cast<int64_t>(size_of(v.dtype));
}

// Computes a call of bfloat16 or float16 with the reference kernel.
void run_half_reference(const KernelCall& call);

// Parts of half_kernels.cc: ops whose rows are independent of each other, and
// whole calls in float32.
void add_half_rows(KernelTable& t);
void add_half_calls(KernelTable& t);

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_HALF_H_
