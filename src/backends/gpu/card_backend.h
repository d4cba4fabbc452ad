// CardBackend: a plug-in for GPUs, built on the cards that it finds.

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

// A plug-in's description of itself. The functions find the cards at the first
// call, once and for all.
struct CardRuntime {
  const char* name;   // "opencl"
  const char* title;  // "OpenCL"
  const std::vector<std::unique_ptr<Card>>& (*cards)();
  // Returns why there are none, or what was left out and why; "": nothing.
  const std::string& (*why_none)();
};

class CardBackend final : public Backend {
 public:
  explicit CardBackend(const CardRuntime& runtime) : runtime_(runtime) {}
  const char* name() const override { return runtime_.name; }
  std::vector<FoundDevice> find_devices(const RuntimeConfig&) override;
  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config, const std::vector<GpuPart>& gpus) override;
  std::string why_none(const RuntimeConfig&) override;

 private:
  const CardRuntime runtime_;
  std::vector<KernelTable> tables_;  // by card
  std::set<int> filled_;
  std::vector<std::string> left_out_;  // why cards have no device
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_CARD_BACKEND_H_
