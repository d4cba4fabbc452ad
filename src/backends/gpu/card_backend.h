// CardBackend: a plug-in for GPUs, over the cards that it finds.

#ifndef BERTH_BACKENDS_GPU_CARD_BACKEND_H_
#define BERTH_BACKENDS_GPU_CARD_BACKEND_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/gpu/card.h"
#include "device/backend_registry.h"
#include "op/kernel.h"

namespace berth::gpu {

// What a plug-in says of itself. The functions find cards at the first call
// and keep them for good.
struct CardRuntime {
  const char* name;   // "opencl"
  const char* title;  // "OpenCL"
  const std::vector<std::unique_ptr<Card>>& (*cards)();
  // Why there are none, or what was left out and why; "" when nothing was.
  const std::string& (*why_none)();
};

class CardBackend final : public Backend {
 public:
  explicit CardBackend(const CardRuntime& runtime) : runtime_(runtime) {}
  const char* name() const override { return runtime_.name; }
  std::vector<FoundDevice> find_devices(const RuntimeConfig&) override;
  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config, const std::vector<GpuPart>& gpus) override;
  std::string why_none(const RuntimeConfig&) override {
    return runtime_.why_none();
  }

 private:
  const CardRuntime runtime_;
  std::vector<KernelTable> tables_;  // by card
  std::set<int> filled_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_CARD_BACKEND_H_
