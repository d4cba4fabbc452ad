// The OpenCL plug-in: its devices are /GPU:n.

#include <set>

#include "backends/gpu/gpu_device.h"
#include "backends/opencl/platforms.h"
#include "device/plugin.h"

namespace berth {

namespace opencl {

namespace {

class OpenClBackend final : public Backend {
 public:
  const char* name() const override { return "opencl"; }

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
    return gpu::make_devices(gpus, cards(), tables_, "OpenCL");
  }

  std::string why_none(const RuntimeConfig&) override {
    return opencl::why_none();
  }

 private:
  std::vector<KernelTable> tables_;
  std::set<int> filled_;
};

void register_opencl(BackendRegistry& registry) {
  registry.add(std::make_unique<OpenClBackend>());
}

}  // namespace

}  // namespace opencl

}  // namespace berth

BERTH_PLUGIN("opencl", berth::opencl::register_opencl);
