// Which OpenCL devices of this machine are GPUs for Berth.
//
// BERTH_OPENCL says it: `gpu` (the default) takes GPUs and accelerators, `all`
// processors, too (PoCL), `off` nothing. Drivers are opened only if one of
// them may have such a device. Thread-safe.

#ifndef BERTH_BACKENDS_OPENCL_PLATFORMS_H_
#define BERTH_BACKENDS_OPENCL_PLATFORMS_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/card.h"

namespace berth::opencl {

// The cards, found at the first call, for good.
const std::vector<std::unique_ptr<gpu::Card>>& cards();

// Why there are none, or what was left out and why; "" when nothing was.
const std::string& why_none();

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_PLATFORMS_H_
