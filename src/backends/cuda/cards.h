// The NVIDIA GPUs of this machine that Berth can use.
//
// BERTH_CUDA=off: none. A driver of CUDA 13 (580 or newer) and NVRTC 13 are
// needed. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_CARDS_H_
#define BERTH_BACKENDS_CUDA_CARDS_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/card.h"

namespace berth::cuda {

// The cards, found at the first call, for good.
const std::vector<std::unique_ptr<gpu::Card>>& cards();

// Why there are none, or what was left out and why; "" when nothing was. Where
// there are cards, libraries that they compute with are opened.
const std::string& why_none();

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CARDS_H_
