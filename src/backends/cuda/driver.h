// Driver: the functions of libcuda that the plug-in calls, found at run time.
//
// Nothing links libcuda, so the plug-in loads even where it is missing. The
// table lives as long as the process. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_DRIVER_H_
#define BERTH_BACKENDS_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>

namespace berth::cuda {

// A function and its name without the version suffix.
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
  X(cuDeviceGetPCIBusId)      \
  X(cuDevicePrimaryCtxRetain) \
  X(cuDeviceCanAccessPeer)    \
  X(cuCtxGetCurrent)          \
  X(cuCtxSetCurrent)          \
  X(cuCtxEnablePeerAccess)    \
  X(cuMemAlloc)               \
  X(cuMemFree)                \
  X(cuMemGetInfo)             \
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
  X(cuFuncLoad)               \
  X(cuLaunchKernel)

// cuda.h may define a name as a macro for the version that it declares; the
// member then has that name, too.
struct Driver {
#define BERTH_CUDA_MEMBER(call) DriverCall<decltype(::call)> call{#call};
  BERTH_CUDA_CALLS(BERTH_CUDA_MEMBER)
#undef BERTH_CUDA_MEMBER
};

// Returns the started driver of this machine; null, with the reason, when there
// is none or it is too old. Only the first call searches.
const Driver* driver(std::string* why);

// "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
std::string error_name(const Driver& driver, CUresult error);

// True for an error after which the driver refuses a context for the rest of
// the process.
bool is_lasting(CUresult error);

// Throws errors::ResourceExhausted when memory ran out, errors::Unavailable
// when the device is lost, else errors::Internal, each with "cuLaunchKernel:
// CUDA_ERROR_... (700)".
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
