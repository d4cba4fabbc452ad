// config: which devices exist and how they are set up (tf.config).
//
// set_* functions act before the first tensor, variable or device query and
// throw errors::FailedPrecondition afterwards. Thread-safe.

#ifndef BERTH_CONFIG_H_
#define BERTH_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/site.h"

namespace berth::config {

struct LogicalDevice {
  std::string name;         // "/job:localhost/replica:0/task:0/device:CPU:0"
  std::string device_type;  // "CPU"
  std::string description;  // "4 cores: 0-3", "simulated, 1 GiB"
  bool simulated = false;
};

// Lists the devices, of one type when `device_type` is not empty
// (tf.config.list_logical_devices).
std::vector<LogicalDevice> list_logical_devices(
    const std::string& device_type = "");

// Adds simulated accelerators, for example "GPUx2"; they stand in as type GPU
// and say so wherever they are listed.
void set_simulated_devices(const std::string& device_list,
                           Site site = Site::here());

// Sets how many threads the CPU device uses; 0: one per allowed core.
void set_intra_op_parallelism_threads(int threads, Site site = Site::here());

struct DeviceMemoryInfo {
  size_t current_bytes = 0;
  size_t peak_bytes = 0;
  size_t reserved_bytes = 0;
  size_t limit_bytes = 0;  // 0: none
};

// Returns memory statistics of a device (tf.config.experimental
// .get_memory_info). Throws errors::InvalidArgument for an unknown device.
DeviceMemoryInfo get_memory_info(const std::string& device);

// Lets a device that failed accept work again. Variables that the failed work
// was writing stay torn until they are assigned.
void reset_device_error(const std::string& device);

// Sets peak_bytes to current_bytes.
void reset_memory_stats(const std::string& device);

}  // namespace berth::config

#endif  // BERTH_CONFIG_H_
