// The CUDA plug-in. Its devices are /GPU:n.

#include "backends/cuda/cards.h"
#include "backends/gpu/card_backend.h"
#include "device/plugin.h"

namespace {

void register_it(berth::BackendRegistry& registry) {
  using namespace berth;
  registry.add(std::make_unique<gpu::CardBackend>(
      gpu::CardRuntime{"cuda", "CUDA", &cuda::cards, &cuda::why_none}));
}

}  // namespace

BERTH_PLUGIN("cuda", register_it);
