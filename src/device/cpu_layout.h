// lay_out_cpus: which cores belong to which CPU device and which to the host.
//
// A pure function of the configuration and the allowed cores.

#ifndef BERTH_DEVICE_CPU_LAYOUT_H_
#define BERTH_DEVICE_CPU_LAYOUT_H_

#include <vector>

#include "base/core_set.h"
#include "device/runtime_config.h"

namespace berth {

struct CpuLayout {
  struct Part {
    CoreSet cores;
    int workers = 0;  // at least 1
    bool shared = false;
    size_t memory_limit_bytes = 0;  // 0: the default; kNoMemoryLimit: none
  };
  std::vector<Part> devices;  // /CPU:0, /CPU:1, ...; at least one
  CoreSet host;               // empty: the host shares /CPU:0's cores
};

// Throws errors::InvalidArgument: cores that are not allowed or asked for
// twice without `shared`, more parts than cores, too many workers.
CpuLayout lay_out_cpus(const RuntimeConfig& config, const CoreSet& allowed);

}  // namespace berth

#endif  // BERTH_DEVICE_CPU_LAYOUT_H_
