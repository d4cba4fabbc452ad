// Driver: the functions of libcuda that the plug-in calls, found at run time.
//
// Nothing links libcuda, so that the plug-in loads where there is none. The
// table lives as long as the process. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_DRIVER_H_
#define BERTH_BACKENDS_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>

namespace berth::cuda {

// A function and its name without the number of its version.
template <class F>
struct DriverCall;
template <class... P>
struct DriverCall<CUresult(P...)> {
  const char* name;
  CUresult (*function)(P...) = nullptr;
};

#define BERTH_CUDA_CALLS(X)   \
  X(cuInit)                   \
  X(cuDriverGetVersion)       \
  X(cuGetErrorName)           \
  X(cuDeviceGetCount)         \
  X(cuDeviceGet)              \
  X(cuDeviceGetName)          \
  X(cuDeviceTotalMem)         \
  X(cuDeviceGetAttribute)     \
  X(cuDevicePrimaryCtxRetain) \
  X(cuDeviceCanAccessPeer)    \
  X(cuCtxGetCurrent)          \
  X(cuCtxSetCurrent)          \
  X(cuCtxEnablePeerAccess)    \
  X(cuMemAlloc)               \
  X(cuMemFree)                \
  X(cuMemHostAlloc)           \
  X(cuMemFreeHost)            \
  X(cuMemcpyHtoDAsync)        \
  X(cuMemcpyDtoHAsync)        \
  X(cuMemcpyDtoDAsync)        \
  X(cuMemcpyPeerAsync)        \
  X(cuMemsetD8Async)          \
  X(cuMemsetD32Async)         \
  X(cuStreamCreate)           \
  X(cuStreamDestroy)          \
  X(cuStreamSynchronize)      \
  X(cuStreamWaitEvent)        \
  X(cuStreamBeginCapture)     \
  X(cuStreamEndCapture)       \
  X(cuGraphInstantiate)       \
  X(cuGraphExecUpdate)        \
  X(cuGraphLaunch)            \
  X(cuGraphExecDestroy)       \
  X(cuGraphDestroy)           \
  X(cuEventCreate)            \
  X(cuEventDestroy)           \
  X(cuEventRecord)            \
  X(cuEventQuery)             \
  X(cuEventSynchronize)       \
  X(cuEventElapsedTime)       \
  X(cuModuleLoadData)         \
  X(cuModuleUnload)           \
  X(cuModuleGetFunction)      \
  X(cuLaunchKernel)

// Names may be macros of cuda.h for those of the version that it declares:
// then members are called so, too.
struct Driver {
#define BERTH_CUDA_MEMBER(call) DriverCall<decltype(::call)> call{#call};
  BERTH_CUDA_CALLS(BERTH_CUDA_MEMBER)
#undef BERTH_CUDA_MEMBER
};

// The driver of this machine, started; null, with the reason, when there is
// none, or one too old. Looks at the first call alone.
const Driver* driver(std::string* why);

// "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
std::string error_name(const Driver& driver, CUresult error);

// True for an error after which the driver refuses a context for as long as
// the process lives.
bool is_lasting(CUresult error);

// Throws errors::ResourceExhausted when memory ran out, errors::Unavailable
// when the device is lost, else errors::Internal, each with
// "cuLaunchKernel: CUDA_ERROR_... (700)".
[[noreturn]] void raise_error(const Driver& driver, CUresult error,
                              const char* call);

// Calls that need no context.
template <class F, class... A>
void call(const Driver& driver, const DriverCall<F>& f, A... args) {
  const CUresult error = f.function(args...);
  if (error != CUDA_SUCCESS) raise_error(driver, error, f.name);
}

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_DRIVER_H_
