// How the GPUs of the machine become logical devices.
//
// Backends say which GPUs there are; they are numbered in the order of the
// backends. Each visible one is a device, or is split into several with limits
// of their own. Pure; thread-safe.

#ifndef BERTH_DEVICE_GPU_LAYOUT_H_
#define BERTH_DEVICE_GPU_LAYOUT_H_

#include <cstddef>
#include <vector>

#include "device/runtime_config.h"

namespace berth {

// A logical GPU.
struct GpuPart {
  int id = 0;                     // of /GPU:<id>
  int physical = 0;               // whose part it is
  size_t memory_limit_bytes = 0;  // 0: all of it
  // Memory growth is off: the device takes its memory at the start.
  bool takes_all_memory = false;
};

// Returns the devices of `gpus` physical GPUs, in the order of their ids.
// Throws errors::InvalidArgument when memory growth is on for some visible
// GPUs and off for others.
std::vector<GpuPart> lay_out_gpus(const RuntimeConfig& config, int gpus);

// Returns those whose physical GPU is one of `count` from `first` on, which
// they number from 0.
std::vector<GpuPart> gpu_parts_of(const std::vector<GpuPart>& all, int first,
                                  int count);

}  // namespace berth

#endif  // BERTH_DEVICE_GPU_LAYOUT_H_
