// A fake libberth_cudnn.so for tests: its plans compute nothing, record their
// arguments, and fail on request.

#ifndef BERTH_BACKENDS_CUDA_FAKE_FAKE_CUDNN_H_
#define BERTH_BACKENDS_CUDA_FAKE_FAKE_CUDNN_H_

#include <string>
#include <vector>

#include "backends/cudnn/cudnn_api.h"

namespace berth::cuda {

// The symbol `berth_fake_cudnn` of the library; `berth_cudnn_api` is its
// interface. Any thread may use that while no thread reads this.
struct FakeCudnn {
  std::string fails;            // name of the failing function: "make_plan"
  std::string bad_folder;       // cuDNN does not open from here
  std::string folder;           // where it was opened from
  std::string card = "a card";  // its key; "": none
  size_t scratch = 512;
  int cards = 0, plans = 0;    // alive
  int made = 0, loaded = 0;    // number of plans
  BerthCudnnGraph graph = {};  // of the last plan
  // Arguments of the last run, with scratch at the end.
  std::vector<void*> arguments;
  void* stream = nullptr;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_FAKE_FAKE_CUDNN_H_
