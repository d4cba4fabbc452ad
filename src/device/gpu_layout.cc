#include "device/gpu_layout.h"

#include <fmt/format.h>

#include <numeric>

#include "berth/errors.h"

namespace berth {

namespace {

std::vector<int> visible(const RuntimeConfig& config, int gpus) {
  if (config.visible_gpus) return *config.visible_gpus;
  std::vector<int> all(static_cast<size_t>(gpus));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

bool take_all_memory(const RuntimeConfig& config,
                     const std::vector<int>& shown) {
  int takes = 0, grows = 0;
  for (const int i : shown) {
    const auto it = config.memory_growth.find(i);
    (it == config.memory_growth.end() || it->second ? grows : takes)++;
  }
  if (takes > 0 && grows > 0) {
    throw errors::InvalidArgument(fmt::format(
        "memory growth is off for {} of the visible GPUs, on for {}; expected "
        "the same for all: call config::set_memory_growth for each",
        takes, grows));
  }
  return takes > 0;
}

}  // namespace

std::vector<GpuPart> lay_out_gpus(const RuntimeConfig& config, int gpus) {
  const std::vector<int> shown = visible(config, gpus);
  const bool takes_all = take_all_memory(config, shown);
  std::vector<GpuPart> parts;
  for (const int physical : shown) {
    const auto add = [&](size_t limit_bytes) {
      const int id = static_cast<int>(parts.size());
      parts.push_back({id, physical, limit_bytes, takes_all});
    };
    const auto cut = config.gpu_parts.find(physical);
    if (cut == config.gpu_parts.end()) {
      add(0);
    } else {
      for (const DevicePart& p : cut->second) add(p.memory_limit_bytes);
    }
  }
  return parts;
}

std::vector<GpuPart> gpu_parts_of(const std::vector<GpuPart>& all, int first,
                                  int count) {
  std::vector<GpuPart> parts;
  for (GpuPart p : all) {
    if (p.physical < first || p.physical >= first + count) continue;
    p.physical -= first;
    parts.push_back(p);
  }
  return parts;
}

}  // namespace berth
