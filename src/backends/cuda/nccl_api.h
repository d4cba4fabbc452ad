// The part of NCCL's C interface that the plug-in calls. libnccl.so.2 has had
// it, with these values, since 2.14. It is declared here because the library is
// opened at run time and its header is not everywhere; where the header exists,
// a test compares them (nccl_library_test.cc).

#ifndef BERTH_BACKENDS_CUDA_NCCL_API_H_
#define BERTH_BACKENDS_CUDA_NCCL_API_H_

#include <cuda.h>

#include <cstddef>

namespace berth::cuda {

// ncclResult_t.
using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclInvalidArgument = 4;
inline constexpr NcclResult kNcclInvalidUsage = 5;
inline constexpr NcclResult kNcclInProgress = 7;

// ncclDataType_t.
using NcclType = int;
inline constexpr NcclType kNcclInt8 = 0;
inline constexpr NcclType kNcclUint8 = 1;
inline constexpr NcclType kNcclInt32 = 2;
inline constexpr NcclType kNcclInt64 = 4;
inline constexpr NcclType kNcclFloat16 = 6;
inline constexpr NcclType kNcclFloat32 = 7;
inline constexpr NcclType kNcclFloat64 = 8;
inline constexpr NcclType kNcclBfloat16 = 9;

// ncclRedOp_t.
inline constexpr int kNcclSum = 0;

struct NcclCommunicator;
using NcclComm = NcclCommunicator*;  // ncclComm_t

struct NcclId {  // ncclUniqueId
  char bytes[128];
};

// The beginning of ncclConfig_t, as of 2.14.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

// X(name, type)
#define BERTH_NCCL_CALLS(X)                                                \
  X(ncclGetVersion, NcclResult (*)(int* version))                          \
  X(ncclGetErrorString, const char* (*)(NcclResult result))                \
  X(ncclGetLastError, const char* (*)(NcclComm comm))                      \
  X(ncclGetUniqueId, NcclResult (*)(NcclId * id))                          \
  X(ncclCommInitRankConfig,                                                \
    NcclResult (*)(NcclComm * comm, int ranks, NcclId id, int rank,        \
                   NcclConfig* config))                                    \
  X(ncclCommGetAsyncError, NcclResult (*)(NcclComm comm, NcclResult * is)) \
  X(ncclCommAbort, NcclResult (*)(NcclComm comm))                          \
  X(ncclGroupStart, NcclResult (*)())                                      \
  X(ncclGroupEnd, NcclResult (*)())                                        \
  X(ncclAllReduce,                                                         \
    NcclResult (*)(const void* source, void* target, size_t count,         \
                   NcclType type, int op, NcclComm comm, CUstream stream))

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_API_H_
