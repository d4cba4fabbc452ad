// LtLibrary: the functions of cuBLASLt that the plug-in calls, found at run
// time.
//
// libcublasLt.so.13 is large, so it is opened for the first product only; it is
// looked for where NVRTC is (nvrtc.h). The table lives as long as the process.
// Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_LT_LIBRARY_H_
#define BERTH_BACKENDS_CUDA_LT_LIBRARY_H_

#include <cublasLt.h>

#include <string>

namespace berth::cuda {

#define BERTH_LT_CALLS(X)             \
  X(cublasLtGetVersion)               \
  X(cublasLtGetStatusName)            \
  X(cublasLtCreate)                   \
  X(cublasLtDestroy)                  \
  X(cublasLtMatmul)                   \
  X(cublasLtMatmulAlgoGetHeuristic)   \
  X(cublasLtMatmulAlgoCheck)          \
  X(cublasLtMatmulDescCreate)         \
  X(cublasLtMatmulDescDestroy)        \
  X(cublasLtMatmulDescSetAttribute)   \
  X(cublasLtMatrixLayoutCreate)       \
  X(cublasLtMatrixLayoutDestroy)      \
  X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceCreate)   \
  X(cublasLtMatmulPreferenceDestroy)  \
  X(cublasLtMatmulPreferenceSetAttribute)

struct LtLibrary {
#define BERTH_LT_MEMBER(call) decltype(&::call) call = nullptr;
  BERTH_LT_CALLS(BERTH_LT_MEMBER)
#undef BERTH_LT_MEMBER

  // "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)"
  std::string error(const char* call, cublasStatus_t status) const;
};

// Returns the library; null, with the reason, when there is none. Only the
// first call searches.
const LtLibrary* lt_library(std::string* why);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_LIBRARY_H_
