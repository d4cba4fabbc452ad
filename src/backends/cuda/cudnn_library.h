// CudnnLibrary: libberth_cudnn.so and cuDNN behind it, found at run time.
//
// libberth_cudnn.so is beside the plug-in or in a folder of
// BERTH_CUDA_LIBRARIES; libcudnn.so.9, with all of its parts, in a folder of
// library_folders(), of cuDNN's Python package, or on the system loader's path.
// Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_CUDNN_LIBRARY_H_
#define BERTH_BACKENDS_CUDA_CUDNN_LIBRARY_H_

#include <string>
#include <vector>

#include "backends/cudnn/cudnn_api.h"

namespace berth::cuda {

// Returns the functions, with cuDNN open; null, with the reason, when something
// is missing or BERTH_CUDNN=off. Only the first call searches. *is_built:
// whether libberth_cudnn.so is there.
const BerthCudnnApi* cudnn_library(std::string* why, bool* is_built);

// Searches these folders again, for tests. `own` has libberth_cudnn.so; `cudnn`
// are tried one after the other for cuDNN.
const BerthCudnnApi* open_cudnn(const std::vector<std::string>& own,
                                const std::vector<std::string>& cudnn,
                                std::string* why);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDNN_LIBRARY_H_
