// Nccl: NVIDIA's library of collectives, found at run time.
//
// libnccl.so.2 (2.14 or newer) is looked for where NVRTC is (nvrtc.h), and in
// the Python packages' nvidia/nccl/lib beside it; not with
// BERTH_COLLECTIVES=own. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_NCCL_LIBRARY_H_
#define BERTH_BACKENDS_CUDA_NCCL_LIBRARY_H_

#include <string>
#include <type_traits>

#include "backends/cuda/nccl_api.h"

namespace berth::cuda {

// Its functions, and their names for errors.
struct NcclCalls {
#define BERTH_NCCL_MEMBER(call, ...) \
  std::type_identity_t<__VA_ARGS__> call = nullptr;
  BERTH_NCCL_CALLS(BERTH_NCCL_MEMBER)
#undef BERTH_NCCL_MEMBER
};

class Nccl {
 public:
  // Returns the library; null, with the reason, when there is none. Only the
  // first call searches. Throws errors::InvalidArgument for an invalid
  // BERTH_COLLECTIVES.
  static const Nccl* find(std::string* why);

  const NcclCalls& calls() const { return calls_; }
  // "NCCL 2.28.9"
  std::string description() const;

  // Returns "ncclAllReduce: unhandled cuda error (1)", and NCCL's message about
  // `comm`, which may be null.
  std::string text_of(const char* call, NcclResult result, NcclComm comm) const;

 private:
  friend struct NcclFound;
  NcclCalls calls_;
  int version_ = 0;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_LIBRARY_H_
