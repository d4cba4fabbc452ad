// The plug-in for tests:
// BERTH_PLUGINS=build/release/gpu_host/libberth_gpu_host.so turns the processor
// into /GPU:0, with the kernels of GPUs.

#include "device/plugin.h"

#include <string>
#include <vector>

#include "backends/gpu/card_backend.h"
#include "base/environment.h"
#include "base/immortal.h"
#include "conformance/gpu_stand_ins/host_card/host_card.h"

namespace {

using namespace berth;

const std::vector<std::unique_ptr<gpu::Card>>& cards() {
  static auto& all = immortal<std::vector<std::unique_ptr<gpu::Card>>>();
  if (all.empty()) {
    const std::string seed = environment("BERTH_GPU_HOST_SEED");
    all.push_back(std::make_unique<gpu::HostCard>(
        seed.empty() ? 0 : std::strtoull(seed.c_str(), nullptr, 10)));
  }
  return all;
}

const std::string& why_none() {
  static const auto& none = immortal<std::string>();
  return none;
}

void register_it(BackendRegistry& registry) {
  registry.add(std::make_unique<gpu::CardBackend>(
      gpu::CardRuntime{"gpu_host", "sanitized", &cards, &why_none}));
}

}  // namespace

BERTH_PLUGIN("gpu_host", register_it);
