// A libberth_cudnn.so for tests: plans that compute nothing, remember what
// they were asked, and fail on request.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_CUDNN_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_CUDNN_H_

#include <string>
#include <vector>

#include "backends/cudnn/cudnn_api.h"

namespace berth::cuda {

// The symbol `berth_fake_cudnn` of the library, `berth_cudnn_api` is its
// interface, which any thread may use while nobody looks at this.
struct FakeCudnn {
  std::string fails;            // the function that fails: "make_plan"
  std::string bad_folder;       // cuDNN does not open from there
  std::string folder;           // that it was opened from
  std::string card = "a card";  // its key; "": it has none
  size_t scratch = 512;
  int cards = 0, plans = 0;    // that live
  int made = 0, loaded = 0;    // plans
  BerthCudnnGraph graph = {};  // of the last plan
  // Of the last run, scratch at the end.
  std::vector<void*> arguments;
  void* stream = nullptr;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_CUDNN_H_
