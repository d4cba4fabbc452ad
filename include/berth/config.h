// config: which devices exist and how they are set up (tf.config).
//
// set_* functions act before the first tensor, variable or device query and
// throw errors::FailedPrecondition afterwards, unless noted; the message names
// the call that created the devices and its line. Repeating a setting is
// allowed at any time. Thread-safe.

#ifndef BERTH_CONFIG_H_
#define BERTH_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/placement_policy.h"
#include "berth/site.h"

namespace berth::config {

// Throws errors::OutOfRange: there is no device `index` among `count`.
[[noreturn]] void raise_no_device(size_t index, size_t count);

// A vector of devices whose indices are checked: gpus[0] on a machine without
// GPUs throws errors::OutOfRange.
template <class Device>
class DeviceList : public std::vector<Device> {
 public:
  using std::vector<Device>::vector;
  const Device& operator[](size_t index) const { return at(index); }
  const Device& at(size_t index) const {
    if (index >= this->size()) raise_no_device(index, this->size());
    return this->data()[index];
  }
};

struct LogicalDevice {
  std::string name;         // "/job:localhost/replica:0/task:0/device:CPU:0"
  std::string device_type;  // "CPU"
  std::string description;  // "4 cores: 0-3", "simulated, 1 GiB"
  bool simulated = false;
};

// Lists the devices, of one type when `device_type` is not empty
// (tf.config.list_logical_devices).
DeviceList<LogicalDevice> list_logical_devices(
    const std::string& device_type = "", Site site = Site::here());

// A device of the machine, before it is made visible or split.
struct PhysicalDevice {
  std::string name;         // "/physical_device:GPU:0"
  std::string device_type;  // "GPU"
  bool simulated = false;

  bool operator==(const PhysicalDevice&) const = default;
};

// Lists the machine's devices without creating them
// (tf.config.list_physical_devices).
DeviceList<PhysicalDevice> list_physical_devices(
    const std::string& device_type = "");

// Makes only these physical devices visible, in this order. Types not among
// them, or other than `device_type`, stay unchanged. The CPU cannot be hidden:
// the host needs it (tf.config.set_visible_devices). Throws
// errors::InvalidArgument "unrecognized device".
void set_visible_devices(const std::vector<PhysicalDevice>& devices,
                         const std::string& device_type = "",
                         Site site = Site::here());
DeviceList<PhysicalDevice> get_visible_devices(
    const std::string& device_type = "");

// false: the GPU takes all its memory when it is created; true, the default: as
// needed. Must be equal on all visible GPUs; refused after logical devices of
// that GPU, and overridden by later ones
// (tf.config.experimental.set_memory_growth).
void set_memory_growth(const PhysicalDevice& device, bool enable,
                       Site site = Site::here());
bool get_memory_growth(const PhysicalDevice& device);

// One logical device. For a CPU: a set of cores; parts that name none split the
// remaining ones evenly. For a GPU: a memory limit, which is required.
struct LogicalDeviceConfiguration {
  std::string cores;            // "4-7"
  int workers = 0;              // 0: one per core
  bool shared = false;          // unpinned; sets may overlap
  int64_t memory_limit_mb = 0;  // MiB; CPU: -1: none, 0: below

  bool operator==(const LogicalDeviceConfiguration&) const = default;
};

// Splits a device into logical ones
// (tf.config.set_logical_device_configuration); CPUs own core sets. Default
// limit of a CPU: BERTH_CPU_MEMORY=12GiB, else slightly less than machine and
// cgroup have left. Throws errors::InvalidArgument.
void set_logical_device_configuration(
    const PhysicalDevice& device,
    const std::vector<LogicalDeviceConfiguration>& parts,
    Site site = Site::here());
std::vector<LogicalDeviceConfiguration> get_logical_device_configuration(
    const PhysicalDevice& device);

// Configures all devices by a device list: "CPUx2,GPUx2", "CPU[0],CPU[1-3]".
// GPUs that the machine does not have are simulated.
void set_device_list(const std::string& device_list, Site site = Site::here());

// Reserves cores for the input pipeline and the host's own work; devices then
// do not use them. "": they share those of /CPU:0, the default.
void set_host_cores(const std::string& cores, Site site = Site::here());

// Limit of the bytes that input pipelines keep ready in total where AUTOTUNE
// chooses their depth; 0: a quarter of the machine's memory, the default. May
// change at any time.
void set_host_memory_budget(size_t bytes);
size_t get_host_memory_budget();

// Adds simulated accelerators, for example "GPUx2"; they have type GPU and are
// marked as simulated wherever they are listed.
void set_simulated_devices(const std::string& device_list,
                           Site site = Site::here());

// Sets how many threads the CPU device uses; 0: one per allowed core.
void set_intra_op_parallelism_threads(int threads, Site site = Site::here());
int get_intra_op_parallelism_threads();

// Accepted for TensorFlow's sake, stored and returned; it changes nothing: ops
// of one device run in order, on all its threads, and devices run in parallel.
void set_inter_op_parallelism_threads(int threads, Site site = Site::here());
int get_inter_op_parallelism_threads();

// What happens if the requested device does not exist or has no kernel. The op
// then runs on the first device, in order of preference, of the same task that
// has one.
enum class SoftPlacement : uint8_t {
  kError,   // errors::InvalidArgument or errors::Unimplemented
  kWarn,    // diagnostic "fallback", once per op and reason, with its bytes
  kSilent,  // only counted
};

// May change at any time; initially kWarn. A bool as in TensorFlow: true is
// kWarn (tf.config.set_soft_device_placement).
void set_soft_device_placement(SoftPlacement policy);
void set_soft_device_placement(bool enabled);
SoftPlacement soft_device_placement();
bool get_soft_device_placement();  // false: kError

// Sets the policy for traced functions that do not name one: "rules",
// initially, or "auto", the planner. May change at any time: functions are
// placed again at their next call. Eager ops are not affected. Throws
// errors::InvalidArgument for another name.
void set_placement_policy(const placement::Policy& policy);
placement::Policy placement_policy();
std::string get_placement_policy();  // the name

// What happens to an input of an eager op that is on another device than the
// op. Variables are never copied; identity() copies under every policy.
enum class DevicePolicy : uint8_t {
  kSilent,          // copied; the initial policy
  kSilentForInt32,  // int32 is copied; else as kExplicit
  kWarn,            // copied; diagnostic "input-copied", once per op and route
  kExplicit,        // errors::InvalidArgument
};

// May change at any time (tf.config.experimental.set_device_policy). The names
// are "silent", "silent_for_int32", "warn", "explicit"; others throw
// errors::InvalidArgument.
void set_device_policy(DevicePolicy policy);
void set_device_policy(const std::string& name);
DevicePolicy device_policy();
std::string get_device_policy();  // the name

struct DeviceMemoryInfo {
  size_t current_bytes = 0;
  size_t peak_bytes = 0;
  size_t reserved_bytes = 0;
  size_t limit_bytes = 0;  // 0: none
};

// Returns memory statistics of a device, including CPUs, for which TensorFlow
// has none (tf.config.experimental.get_memory_info). Waits for the work that
// the device has been given, which holds tensors that the program has dropped.
// Throws errors::InvalidArgument for an unknown device.
DeviceMemoryInfo get_memory_info(const std::string& device,
                                 Site site = Site::here());

// Makes a failed device accept work again. Variables that the failed work was
// writing stay torn until they are assigned.
void reset_device_error(const std::string& device);

// Sets peak_bytes to current_bytes; waits as get_memory_info() does.
void reset_memory_stats(const std::string& device);

// TensorFlow's older names.
namespace experimental {
using VirtualDeviceConfiguration = LogicalDeviceConfiguration;
using config::get_device_policy;
using config::get_memory_growth;
using config::get_memory_info;
using config::get_visible_devices;
using config::list_logical_devices;
using config::list_physical_devices;
using config::reset_memory_stats;
using config::set_device_policy;
using config::set_memory_growth;
using config::set_visible_devices;
inline std::vector<VirtualDeviceConfiguration> get_virtual_device_configuration(
    const PhysicalDevice& device) {
  return get_logical_device_configuration(device);
}
inline void set_virtual_device_configuration(
    const PhysicalDevice& device,
    const std::vector<VirtualDeviceConfiguration>& parts,
    Site site = Site::here()) {
  set_logical_device_configuration(device, parts, site);
}
}  // namespace experimental

namespace threading {
using config::get_inter_op_parallelism_threads;
using config::get_intra_op_parallelism_threads;
using config::set_inter_op_parallelism_threads;
using config::set_intra_op_parallelism_threads;
}  // namespace threading

}  // namespace berth::config

#endif  // BERTH_CONFIG_H_
