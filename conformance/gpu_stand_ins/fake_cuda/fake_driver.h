// A fake libcuda.so.1 for tests: host memory, streams that run at once, graphs
// whose copies and fills run at launch, kernels that do nothing, and failures
// on request.
//
// BERTH_FAKE_CUDA, or begin(), configures it, separated by commas:
//   devices=2                  how many GPUs; 1
//   driver=12020               version of CUDA; 13000
//   memory=64M                 of each GPU; 1G
//   others=16M                 of that, used by other processes; 0
//   pause=100                  microseconds that a thread sleeps after it has
//                              recorded an event without times; 0
//   mode=2                     compute mode of each GPU, CUcomputemode; 0
//   integrated=1               shares its memory with the host; 0
//   capability=75              of each GPU; 90
//   later=3                    events pass after so many queries; 0
//   fail=cuLaunchKernel@3:700  the third call returns 700; may be repeated
// An error from which a context does not recover stays. Wrong calls, such as
// with another card's context current or past the end of an allocation, return
// an error. Only copies can access a GPU's memory. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_DRIVER_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_DRIVER_H_

#include <cstddef>
#include <cstdint>

namespace berth::cuda {

// The symbol `berth_fake_driver` of the library.
struct FakeDriver {
  // Restarts with this description: clears counts and errors, and frees the
  // memory of lost GPUs.
  void (*begin)(const char* description);
  // Returns the calls of a function so far.
  long (*calls)(const char* name);
  // Returns the calls that failed on request.
  long (*failed)();
  // Holds a stream, so that no new event on it passes, or releases it. Appended
  // work runs all the same.
  void (*hold)(void* stream, bool held);
  // Returns where the bytes of GPU number `device` (-1: any) can be accessed;
  // null unless one of its allocations holds them all.
  char* (*touch)(uint64_t address, size_t bytes, int device);
  // Returns the GPU whose context is current on the calling thread; -1: none.
  int (*current)();
  // Bytes allocated on all GPUs; streams, events, modules, host allocations.
  size_t (*bytes_used)();
  long (*objects)();
  // Advances the time on the GPUs.
  void (*pass_time)(double ms);
  // Returns how often memory was freed while a stream of its GPU was held.
  long (*freed_early)();
  // Returns the first letter of the thread's name for each record of an event
  // without times on a GPU.
  const char* (*recorded)(int device);
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_DRIVER_H_
