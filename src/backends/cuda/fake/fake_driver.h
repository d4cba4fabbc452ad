// A libcuda.so.1 for tests: memory of the host, streams that run at once,
// graphs whose copies and fills are done when they are launched, kernels that
// do nothing, and failures on request.
//
// BERTH_FAKE_CUDA, or begin(), says what it is like, separated by commas:
//   devices=2                  how many GPUs; 1
//   driver=12020               version of CUDA; 13000
//   memory=64M                 of each GPU; 1G
//   capability=75              of each GPU; 90
//   later=3                    events pass when asked so often; 0
//   fail=cuLaunchKernel@3:700  the third call returns 700; may be repeated
// An error that a context does not recover from stays. What is called wrongly,
// such as with another card's context current or past the end of an
// allocation, returns an error. Memory of a GPU cannot be touched but by
// copies. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_DRIVER_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_DRIVER_H_

#include <cstddef>
#include <cstdint>

namespace berth::cuda {

// The symbol `berth_fake_driver` of the library.
struct FakeDriver {
  // Starts anew with this description: counts are 0, errors forgotten and the
  // memory of lost GPUs free.
  void (*begin)(const char* description);
  // Calls of a function so far.
  long (*calls)(const char* name);
  // Calls that failed on request.
  long (*failed)();
  // Lets nothing pass on a stream that was not there before, or does again.
  // Work that was appended is done all the same.
  void (*hold)(void* stream, bool held);
  // Where bytes of a GPU can be touched, by its number, -1: of any; null: they
  // are not all of one allocation of its own.
  char* (*touch)(uint64_t address, size_t bytes, int device);
  // The GPU whose context is current for the calling thread; -1: none.
  int (*current)();
  // Bytes allocated on all GPUs; streams, events, modules, host allocations.
  size_t (*bytes_used)();
  long (*objects)();
  // Lets so much time pass on the GPUs.
  void (*pass_time)(double ms);
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_DRIVER_H_
