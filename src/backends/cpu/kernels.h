// The CPU backend's float32 kernels, built on its math.
//
// Each family is a file that registers its kernels. What a kernel does not take
// (other dtypes, odd broadcasts, empty arrays) goes to the reference kernel
// after it in the device's table. Direct kernels are serial: the executor
// splits them. Prepared kernels split themselves over the context's pool into
// the slices of their PrepareArgs, which alone determine their bits. None
// allocates at run time. Thread-safe.

#ifndef BERTH_BACKENDS_CPU_KERNELS_H_
#define BERTH_BACKENDS_CPU_KERNELS_H_

#include <algorithm>

#include "base/thread_pool.h"
#include "op/kernel.h"
#include "op/view_cut.h"

namespace berth::cpu {

// Returns the table of all kernels here, without the reference kernels. It is
// built at the first call.
const KernelTable& kernels();

// The families; each file *_kernels.cc adds one.
using AddKernels = void(KernelTable& t);
AddKernels add_elementwise, add_expressions, add_softmax, add_matmul, add_conv,
    add_pool, add_reduce, add_folds, add_norm, add_layer_norm, add_lstm,
    add_training, add_layout, add_random, add_half, add_gather, add_linalg,
    add_factor, add_fourier, add_sort;

inline constexpr DTypeSet kFloat32 = dtype_bit(float32);

// Computes a float32 call with the reference kernel of its op.
void run_reference(const KernelCall& call);

// Computes a call of an elementwise op without attributes block by block, for
// every broadcast, large results past the caches. False when it cannot.
bool run_single(const KernelCall& call);

// How an operand lies in the shape it broadcasts to, ignoring axes of size 1.
struct Spread {
  enum class Kind {
    kSame,    // has every axis
    kScalar,  // has none
    kRows,    // operand [outer, cols] in [outer, rows, cols]
    kCols,    // operand [rows] in [rows, cols]
    kOther,
  };
  Kind kind = Kind::kOther;
  int64_t outer = 1, rows = 1, cols = 1;
};

// `operand` must broadcast to `full`.
Spread spread_of(const Shape& operand, const Shape& full);

// Elements that pay for a part of a fork: a few microseconds.
inline constexpr int64_t kPartFloats = 8192;

// Returns the number of parts for `items` that together touch `floats`: at most
// `slices`, fewer when parts would not pay for a fork. Depends on its arguments
// alone.
int cut_parts(int64_t items, int64_t floats, int slices);

// Calls body(part) for each part, on the context's pool if there is one and the
// work of `floats` elements pays for a fork.
template <class Body>
void run_parts(const KernelCall& call, int parts, int64_t floats, Body&& body) {
  ThreadPool* pool = call.context->pool;
  if (pool == nullptr || parts == 1 || floats < 2 * kPartFloats) {
    for (int i = 0; i < parts; ++i) body(i);
    return;
  }
  constexpr double kFloatsPerUs = 2000;
  pool->parallel_for(parts, body, static_cast<double>(floats) / kFloatsPerUs);
}

inline size_t float_bytes(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_KERNELS_H_
