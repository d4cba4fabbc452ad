// A libcublasLt.so.13 for tests, over the driver that pretends: it computes
// products by plain loops in double precision and fails on request.
//
// begin() says what it is like, separated by commas:
//   kernels=3                  how many it proposes for a product; 3
//   times=4:1:2                milliseconds that each takes; 1
//   epilogues=0                it has none
//   fail=cublasLtMatmul@2:15   the second call returns 15; may be repeated
// What is called wrongly, such as with an address that is not aligned, one
// past an allocation, no context, or too little scratch, returns an error.
// Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_LT_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_LT_H_

#include <cstddef>

namespace berth::cuda {

// The symbol `berth_fake_lt` of the library.
struct FakeLt {
  // Starts anew with this description; counts are 0.
  void (*begin)(const char* description);
  // Calls of a function so far.
  long (*calls)(const char* name);
  // Calls that failed on request.
  long (*failed)();
  // Handles, descriptors, layouts and preferences that were not destroyed.
  long (*objects)();
  // The number of the kernel that ran last; -1: none did.
  int (*last_kernel)();
  // What that computed in, a cublasComputeType_t.
  int (*last_compute)();
};

// What a number of kernel begins with in its algorithm, and its scratch.
inline constexpr unsigned long kFakeLtMark = 0xb0a7'0000'0000'0000;
inline constexpr size_t kFakeLtScratch = 1000;  // times its number

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_LT_H_
