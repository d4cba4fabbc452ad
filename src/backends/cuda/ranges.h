// NVTX ranges: tools (Nsight Systems, Nsight Compute) show which op launches
// what. Pushes only with BERTH_NVTX=1 or an attached tool. Any thread.

#ifndef BERTH_BACKENDS_CUDA_RANGES_H_
#define BERTH_BACKENDS_CUDA_RANGES_H_

namespace berth::cuda {

// True when ranges have a receiver: BERTH_NVTX, else whether a tool is attached
// (NVTX_INJECTION64_PATH). False if built without the headers. Throws
// errors::InvalidArgument for a BERTH_NVTX other than 0 and 1.
bool ranges_asked();

// Begin and end a range of the calling thread; ranges nest.
void begin_range(const char* name) noexcept;
void end_range() noexcept;

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_RANGES_H_
