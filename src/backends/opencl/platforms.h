// Selects the OpenCL devices of this machine that are GPUs for Berth.
//
// BERTH_OPENCL=gpu (the default) takes GPUs and accelerators, `all` takes
// processors, too (PoCL), `off` takes nothing. Drivers are opened only if one
// of them may have such a device. Thread-safe.

#ifndef BERTH_BACKENDS_OPENCL_PLATFORMS_H_
#define BERTH_BACKENDS_OPENCL_PLATFORMS_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/card.h"

namespace berth::opencl {

// Returns the cards; they are found at the first call and never change.
const std::vector<std::unique_ptr<gpu::Card>>& cards();

// Returns why there are none, or what was left out and why; "": nothing.
const std::string& why_none();

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_PLATFORMS_H_
