// How the processor computes the results that GPUs are compared with.

#ifndef BERTH_BACKENDS_OPENCL_PROCESSOR_LOOPS_TESTING_H_
#define BERTH_BACKENDS_OPENCL_PROCESSOR_LOOPS_TESTING_H_

#include <cstdlib>
#include <cstring>

namespace berth::opencl {

// True when its loops round a product and a sum once, as GPUs do: v3 and v4.
inline bool processor_loops_fuse() {
  const char* isa = std::getenv("BERTH_ISA");
  return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2") &&
         (isa == nullptr || std::strcmp(isa, "v1") != 0);
}

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_PROCESSOR_LOOPS_TESTING_H_
