// A fake libcublasLt.so.13 for tests, over the fake driver. It computes
// products by plain loops in double precision and fails on request.
//
// begin() configures it, separated by commas:
//   kernels=3                  how many it proposes for a product; 3
//   times=4:1:2                milliseconds that each takes; 1
//   epilogues=0                it has none
//   fail=cublasLtMatmul@2:15   the second call returns 15; may be repeated
// Wrong calls, such as with an unaligned address, one past an allocation,
// without a context, or with too little scratch, return an error. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_LT_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_LT_H_

#include <cstddef>

namespace berth::cuda {

// The symbol `berth_fake_lt` of the library.
struct FakeLt {
  // Restarts with this description; counts are 0.
  void (*begin)(const char* description);
  // Returns the calls of a function so far.
  long (*calls)(const char* name);
  // Returns the calls that failed on request.
  long (*failed)();
  // Counts handles, descriptors, layouts and preferences not yet destroyed.
  long (*objects)();
  // Returns the number of the kernel that ran last; -1: none did.
  int (*last_kernel)();
  // Returns the cublasComputeType_t that it computed in.
  int (*last_compute)();
};

// Marks the number of a kernel in its algorithm; and its scratch.
inline constexpr unsigned long kFakeLtMark = 0xb0a7'0000'0000'0000;
inline constexpr size_t kFakeLtScratch = 1000;  // times its number

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_LT_H_
