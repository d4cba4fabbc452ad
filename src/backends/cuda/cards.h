// The NVIDIA GPUs of this machine that Berth can use.
//
// They need a driver of CUDA 13 (580 or newer) and NVRTC 13. BERTH_CUDA=off
// disables all. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_CARDS_H_
#define BERTH_BACKENDS_CUDA_CARDS_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/card.h"

namespace berth::cuda {

// Returns the cards; they are found at the first call and never change.
const std::vector<std::unique_ptr<gpu::Card>>& cards();

// Returns why there are none, or what was left out and why; "" when nothing
// was. If there are cards, it opens the libraries that they compute with.
const std::string& why_none();

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CARDS_H_
