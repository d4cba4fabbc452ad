// The OpenCL plug-in. Its devices are /GPU:n.

#include "backends/gpu/card_backend.h"
#include "backends/opencl/platforms.h"
#include "device/plugin.h"

namespace {

void register_it(berth::BackendRegistry& registry) {
  using namespace berth;
  registry.add(std::make_unique<gpu::CardBackend>(
      gpu::CardRuntime{"opencl", "OpenCL", &opencl::cards, &opencl::why_none}));
}

}  // namespace

BERTH_PLUGIN("opencl", register_it);
