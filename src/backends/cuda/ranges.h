// NVTX ranges: tools (Nsight Systems, Nsight Compute) show which op launches
// what. Nothing is pushed unless BERTH_NVTX=1, or a tool is attached. Any
// thread.

#ifndef BERTH_BACKENDS_CUDA_RANGES_H_
#define BERTH_BACKENDS_CUDA_RANGES_H_

namespace berth::cuda {

// True when ranges go anywhere: BERTH_NVTX, else whether a tool is attached
// (NVTX_INJECTION64_PATH). False where the headers were missing. Throws
// errors::InvalidArgument for a BERTH_NVTX that is neither 0 nor 1.
bool ranges_asked();

// A range of the calling thread, and its end; they nest.
void begin_range(const char* name) noexcept;
void end_range() noexcept;

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_RANGES_H_
