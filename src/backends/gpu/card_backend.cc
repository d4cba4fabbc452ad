#include "backends/gpu/card_backend.h"

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/replay.h"

namespace berth::gpu {

std::vector<FoundDevice> CardBackend::find_devices(const RuntimeConfig&) {
  return std::vector<FoundDevice>(runtime_.cards().size(), {"GPU"});
}

std::vector<std::unique_ptr<Device>> CardBackend::create_devices(
    const RuntimeConfig& config, const std::vector<GpuPart>& gpus) {
  if (gpus.empty()) return {};
  register_replays();
  const auto& cards = runtime_.cards();
  tables_.resize(cards.size());
  for (const GpuPart& p : gpus) {
    const auto i = static_cast<size_t>(p.physical);
    if (filled_.insert(p.physical).second) {
      fill_table(*cards[i], config, tables_[i]);
    }
  }
  return make_devices(gpus, cards, tables_, runtime_.title, &left_out_);
}

std::string CardBackend::why_none(const RuntimeConfig&) {
  std::string why = runtime_.why_none();
  for (const std::string& reason : left_out_) {
    if (why.find(reason) != std::string::npos) continue;
    why += (why.empty() ? "" : "; ") + reason;
  }
  return why;
}

}  // namespace berth::gpu
