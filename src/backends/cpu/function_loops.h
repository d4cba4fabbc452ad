// FunctionLoops: sine, cosine, reductions of any number type and sorts,
// compiled once per instruction set. Serial, on raw pointers, no allocation.
// Thread-safe.

#ifndef BERTH_BACKENDS_CPU_FUNCTION_LOOPS_H_
#define BERTH_BACKENDS_CPU_FUNCTION_LOOPS_H_

#include <cstdint>

namespace berth::cpu {

enum class Fold { kMax, kMin, kSum, kProd, kCount };

// One reduction of one number type. NaN wins in kMax and kMin; integers wrap
// around; float32 is multiplied in double.
struct FoldLoops {
  // y[rows] from x[rows, cols]
  void (*inner)(const void* x, void* y, int64_t rows, int64_t cols);
  // y[cols] from x[rows, cols] with row stride ld; rows > 0
  void (*outer)(const void* x, void* y, int64_t rows, int64_t cols, int64_t ld);
};

// Index of the largest or smallest element as int32 or, if wide, int64: the
// first of equal ones, or the first NaN.
struct ArgLoops {
  // y[rows] of x[rows, cols]
  void (*inner)(const void* x, void* y, bool wide, int64_t rows, int64_t cols);
  // y[cols] of x[rows, cols]
  void (*outer)(const void* x, void* y, bool wide, int64_t rows, int64_t cols);
};

// Sort x[n], ascending, to y[n], which may be x. Rows that are still long after
// `splits` splits, about 2 log2 n, are sorted by a heap, so that no order of
// the elements takes quadratic time. Return false, with a copy of x in y, if x
// has a NaN or -0. Null below x86-64-v3.
struct SortLoops {
  bool (*float32)(const float* x, float* y, int64_t n, int splits);
  bool (*float64)(const double* x, double* y, int64_t n, int splits);
  bool (*int32)(const int32_t* x, int32_t* y, int64_t n, int splits);
  bool (*int64)(const int64_t* x, int64_t* y, int64_t n, int splits);
};

struct FunctionLoops {
  void (*sin)(const float* x, float* y, int64_t n);
  void (*cos)(const float* x, float* y, int64_t n);

  static constexpr int kTypes = 5;  // float32, float64, int32, int64, uint8
  FoldLoops fold[static_cast<int>(Fold::kCount)][kTypes];
  ArgLoops arg[2][kTypes];  // kMax, kMin
  SortLoops sort;
};

// The loops of each instruction set.
namespace v1 {
const FunctionLoops& function_table();
}
#if defined(__x86_64__)
namespace v3 {
const FunctionLoops& function_table();
}
namespace v4 {
const FunctionLoops& function_table();
}
#endif

// Returns the loops compiled for the instruction set of loops().
const FunctionLoops& function_loops();

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_FUNCTION_LOOPS_H_
