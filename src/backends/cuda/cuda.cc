// The CUDA plug-in: its devices are /GPU:n.

#include <set>

#include "backends/cuda/cards.h"
#include "backends/gpu/gpu_device.h"
#include "device/plugin.h"

namespace berth {

namespace cuda {

namespace {

class CudaBackend final : public Backend {
 public:
  const char* name() const override { return "cuda"; }

  std::vector<FoundDevice> find_devices(const RuntimeConfig&) override {
    return std::vector<FoundDevice>(cards().size(), {"GPU"});
  }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config, const std::vector<GpuPart>& gpus) override {
    if (gpus.empty()) return {};
    tables_.resize(cards().size());
    for (const GpuPart& p : gpus) {
      const auto i = static_cast<size_t>(p.physical);
      if (!filled_.insert(p.physical).second) continue;
      gpu::fill_table(*cards()[i], config, tables_[i]);
    }
    return gpu::make_devices(gpus, cards(), tables_, "CUDA");
  }

  std::string why_none(const RuntimeConfig&) override {
    return cuda::why_none();
  }

 private:
  std::vector<KernelTable> tables_;
  std::set<int> filled_;
};

void register_cuda(BackendRegistry& registry) {
  registry.add(std::make_unique<CudaBackend>());
}

}  // namespace

}  // namespace cuda

}  // namespace berth

BERTH_PLUGIN("cuda", berth::cuda::register_cuda);
