// RuntimeConfig: what the user configured before the first device query.
//
// Filled by berth::config and the environment (BERTH_SIM, BERTH_SIM_SEED,
// BERTH_SIM_MISSING, BERTH_SIM_CLOCK, BERTH_SIM_FAULTS, BERTH_SIM_KERNELS,
// BERTH_CPU_KERNELS, BERTH_CPU_WORKERS, BERTH_CPU_MEMORY). The manager guards.

#ifndef BERTH_DEVICE_RUNTIME_CONFIG_H_
#define BERTH_DEVICE_RUNTIME_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

class KernelTable;  // op/kernel.h

// One entry of a device list: "CPUx2", "GPUx2", "CPU[0]", "CPU[1-3]".
struct DeviceListEntry {
  std::string type;   // upper case
  int count = 1;      // of "xN"
  std::string cores;  // of "[...]", "" when absent
};

// What "xN" says at most, of devices that are there.
inline constexpr int kMostOfOneEntry = 60;

// Parses a comma list, of devices that need not be there perhaps. Throws
// errors::InvalidArgument naming the entry and what was expected.
std::vector<DeviceListEntry> parse_device_list(
    std::string_view text, int most_of_one_entry = kMostOfOneEntry);

// A logical device: a part of a physical one.
struct DevicePart {
  std::string cores;              // of a CPU: "0-3"; "": see cpu_parts
  int workers = 0;                // of a CPU; 0: one per core
  bool shared = false;            // the cores are used by others too
  size_t memory_limit_bytes = 0;  // 0: of a CPU, cpu_memory_limit_bytes
};

struct RuntimeConfig {
  int simulated_gpus = 0;
  // Logical CPU devices. Empty: one that owns every allowed core. Parts that
  // name no cores cut what the others and the host leave evenly.
  std::vector<DevicePart> cpu_parts;
  // Cores of the input pipeline and of the host's own work; "": those of
  // /CPU:0.
  std::string host_cores;
  // By physical GPU; one that is not here is one logical device.
  std::map<int, std::vector<DevicePart>> gpu_parts;
  // Physical GPUs that become devices, in this order; not set: all.
  std::optional<std::vector<int>> visible_gpus;
  // By physical GPU: false takes all the memory at the start.
  std::map<int, bool> memory_growth;
  uint64_t sim_seed = 0;                 // 0: streams run in launch order
  size_t sim_memory_bytes = 1ull << 30;  // per simulated device
  double sim_flops_per_second = 1e12;
  double sim_bytes_per_second = 1e11;            // memory of a device
  double sim_link_bytes_per_second = 1e10;       // between devices
  std::vector<std::string> sim_missing_kernels;  // op names
  bool sim_reference_only = false;               // the plain loops only
  bool sim_real_clock = false;  // work takes the time it would take
  std::string sim_faults;       // backends/sim/faults.h
  bool cpu_reference_only = false;
  int cpu_workers = 0;                // 0: one per allowed core
  int inter_op_threads = 0;           // kept for get_*, without effect
  size_t cpu_memory_limit_bytes = 0;  // 0: device/machine_memory.h
  // By device type: what adds kernels of the user's own, in order.
  std::vector<std::pair<std::string, std::function<void(KernelTable&)>>>
      user_kernels;

  // Adds the user's kernels for devices of `type`; a backend does it before it
  // adds its own, so that the user's come first.
  void add_user_kernels(std::string_view type, KernelTable& table) const {
    for (const auto& [of, add] : user_kernels) {
      if (of == type) add(table);
    }
  }
};

// Reads the environment over the defaults. Throws errors::InvalidArgument
// naming the variable, its value and what was expected.
RuntimeConfig runtime_config_from_environment();

}  // namespace berth

#endif  // BERTH_DEVICE_RUNTIME_CONFIG_H_
