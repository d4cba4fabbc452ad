// Physical devices: what is visible and how it is split into logical ones.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/core_set.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/cpu_layout.h"
#include "device/device_list.h"
#include "device/device_manager.h"
#include "device/machine_memory.h"
#include "device/opening.h"

namespace berth::config {

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kMostParts = 32;

// What the backends find, numbered by type.
DeviceList<PhysicalDevice> all_devices(const RuntimeConfig& config) {
  DeviceList<PhysicalDevice> list;
  std::map<std::string, int> count;
  const Opening opening;  // drivers, too
  const BackendRegistry registry = find_backends();
  for (const auto& backend : registry.backends()) {
    for (const FoundDevice& d : backend->find_devices(config)) {
      list.push_back(
          {fmt::format("/physical_device:{}:{}", d.type, count[d.type]++),
           d.type, d.simulated});
    }
  }
  return list;
}

std::string names_of(const std::vector<PhysicalDevice>& devices) {
  std::string s;
  for (const PhysicalDevice& d : devices) s += (s.empty() ? "" : ", ") + d.name;
  return s;
}

// The number of a device among those of its type.
int index_of(const char* what, const PhysicalDevice& device,
             const RuntimeConfig& config) {
  const auto all = all_devices(config);
  int index = 0;
  for (const PhysicalDevice& d : all) {
    if (d.device_type != device.device_type) continue;
    if (d.name == device.name) return index;
    ++index;
  }
  throw errors::InvalidArgument(
      fmt::format("{}: unrecognized device '{}'; expected one of {}", what,
                  device.name, names_of(all)));
}

DeviceList<PhysicalDevice> visible(const RuntimeConfig& config) {
  const DeviceList<PhysicalDevice> all = all_devices(config);
  if (!config.visible_gpus) return all;
  DeviceList<PhysicalDevice> list, gpus;
  for (const PhysicalDevice& d : all) {
    (d.device_type == "GPU" ? gpus : list).push_back(d);
  }
  for (int i : *config.visible_gpus) {
    list.push_back(gpus.at(static_cast<size_t>(i)));
  }
  return list;
}

DeviceList<PhysicalDevice> of_type(DeviceList<PhysicalDevice> list,
                                   const std::string& type) {
  if (!type.empty()) {
    std::erase_if(list, [&](const auto& d) { return d.device_type != type; });
  }
  return list;
}

// GPUs of the machine, which a device list takes before it simulates any.
int real_gpus(RuntimeConfig config) {
  config.simulated_gpus = 0;
  return static_cast<int>(of_type(all_devices(config), "GPU").size());
}

void check_type(const char* what, const std::string& type) {
  if (type.empty() || type == "CPU" || type == "GPU") return;
  for (const auto& d : all_devices(DeviceManager::planned_config())) {
    if (d.device_type == type) return;
  }
  throw errors::InvalidArgument(fmt::format(
      "{}: device type '{}'; expected 'CPU', 'GPU' or ''", what, type));
}

DevicePart checked(const PhysicalDevice& device,
                   const LogicalDeviceConfiguration& part) {
  const char* what = "config::set_logical_device_configuration";
  const bool cpu = device.device_type == "CPU";
  if (part.memory_limit_mb < (cpu ? -1 : 0) ||
      part.memory_limit_mb > (int64_t{1} << 40)) {
    throw errors::InvalidArgument(
        fmt::format("{}: a memory limit of {} MiB; expected at least 1{}", what,
                    part.memory_limit_mb,
                    cpu ? ", 0 for the default, or -1 for none" : ""));
  }
  if (device.device_type == "GPU") {
    if (part.memory_limit_mb == 0) {
      throw errors::InvalidArgument(
          fmt::format("{}: a logical GPU of {} has no memory limit; expected "
                      ".memory_limit_mb on each of them",
                      what, device.name));
    }
    if (!part.cores.empty() || part.workers != 0 || part.shared) {
      throw errors::InvalidArgument(fmt::format(
          "{}: cores and workers belong to CPUs; {} is a GPU: give it "
          ".memory_limit_mb alone",
          what, device.name));
    }
  }
  return {part.cores, part.workers, part.shared,
          part.memory_limit_mb < 0
              ? kNoMemoryLimit
              : static_cast<size_t>(part.memory_limit_mb) * kMiB};
}

// Throws when the CPUs cannot be split so; says nothing of cores when it is too
// late for any cut, which configure() says.
void check_layout(const RuntimeConfig& would) {
  if (!DeviceManager::initialised()) lay_out_cpus(would, CoreSet::allowed());
}

LogicalDeviceConfiguration told(const DevicePart& part) {
  return {part.cores, part.workers, part.shared,
          part.memory_limit_bytes == kNoMemoryLimit
              ? -1
              : static_cast<int64_t>(part.memory_limit_bytes / kMiB)};
}

std::vector<LogicalDeviceConfiguration> told(
    const std::vector<DevicePart>& parts) {
  std::vector<LogicalDeviceConfiguration> list;
  for (const DevicePart& p : parts) list.push_back(told(p));
  return list;
}

}  // namespace

DeviceList<PhysicalDevice> list_physical_devices(
    const std::string& device_type) {
  check_type("config::list_physical_devices", device_type);
  return of_type(all_devices(DeviceManager::planned_config()), device_type);
}

DeviceList<PhysicalDevice> get_visible_devices(const std::string& device_type) {
  return of_type(visible(DeviceManager::planned_config()), device_type);
}

void set_visible_devices(const std::vector<PhysicalDevice>& devices,
                         const std::string& device_type, Site site) {
  const char* what = "config::set_visible_devices";
  check_type(what, device_type);
  const RuntimeConfig config = DeviceManager::planned_config();
  std::vector<int> gpus;
  bool cpu = false;
  for (const PhysicalDevice& d : devices) {
    const int index = index_of(what, d, config);
    if (!device_type.empty() && d.device_type != device_type) {
      throw errors::InvalidArgument(
          fmt::format("{}: {} is not of type {}; expected devices of that type "
                      "alone",
                      what, d.name, device_type));
    }
    if (d.device_type == "CPU") {
      cpu = true;
    } else if (std::find(gpus.begin(), gpus.end(), index) != gpus.end()) {
      throw errors::InvalidArgument(
          fmt::format("{}: {} is listed twice", what, d.name));
    } else {
      gpus.push_back(index);
    }
  }
  if (!cpu && device_type != "GPU") {
    throw errors::InvalidArgument(
        fmt::format("{}: the list hides the CPU, which the host needs; add "
                    "/physical_device:CPU:0, or give the type \"GPU\"",
                    what));
  }
  if (device_type == "CPU") return;
  const auto all = of_type(all_devices(config), "GPU");
  std::vector<int> now;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) now.push_back(i);
  if (config.visible_gpus) now = *config.visible_gpus;
  if (now == gpus) return;
  DeviceManager::configure(what, site,
                           [gpus](RuntimeConfig& c) { c.visible_gpus = gpus; });
}

void set_memory_growth(const PhysicalDevice& device, bool enable, Site site) {
  const char* what = "config::set_memory_growth";
  const RuntimeConfig config = DeviceManager::planned_config();
  const int index = index_of(what, device, config);
  if (device.device_type != "GPU") {
    throw errors::InvalidArgument(fmt::format(
        "{}: {} is not a GPU; the memory of a CPU always grows: limit it with "
        "set_logical_device_configuration",
        what, device.name));
  }
  if (config.gpu_parts.count(index)) {
    throw errors::InvalidArgument(
        fmt::format("{}: {} has logical devices, whose limits say how much "
                    "they take; expected one or the other",
                    what, device.name));
  }
  const auto set = config.memory_growth.find(index);
  if (set != config.memory_growth.end() && set->second == enable) return;
  DeviceManager::configure(what, site, [index, enable](RuntimeConfig& c) {
    c.memory_growth[index] = enable;
  });
}

bool get_memory_growth(const PhysicalDevice& device) {
  const RuntimeConfig config = DeviceManager::planned_config();
  const int index = index_of("config::get_memory_growth", device, config);
  if (device.device_type != "GPU") return true;
  const auto it = config.memory_growth.find(index);
  return it == config.memory_growth.end() || it->second;
}

void set_logical_device_configuration(
    const PhysicalDevice& device,
    const std::vector<LogicalDeviceConfiguration>& parts, Site site) {
  const char* what = "config::set_logical_device_configuration";
  const RuntimeConfig config = DeviceManager::planned_config();
  const int index = index_of(what, device, config);
  if (parts.empty() || parts.size() > kMostParts) {
    throw errors::InvalidArgument(
        fmt::format("{}: {} logical devices of {}; expected 1 to {}", what,
                    parts.size(), device.name, kMostParts));
  }
  if (get_logical_device_configuration(device) == parts) return;
  std::vector<DevicePart> cut;
  for (const auto& part : parts) cut.push_back(checked(device, part));
  if (device.device_type == "CPU") {
    RuntimeConfig would = config;
    would.cpu_parts = cut;
    check_layout(would);
    DeviceManager::configure(what, site,
                             [cut](RuntimeConfig& c) { c.cpu_parts = cut; });
    return;
  }
  // The later call wins: limits say how much memory each part takes.
  DeviceManager::configure(what, site, [index, cut](RuntimeConfig& c) {
    c.gpu_parts[index] = cut;
    c.memory_growth.erase(index);
  });
}

std::vector<LogicalDeviceConfiguration> get_logical_device_configuration(
    const PhysicalDevice& device) {
  const RuntimeConfig config = DeviceManager::planned_config();
  const int index =
      index_of("config::get_logical_device_configuration", device, config);
  if (device.device_type == "CPU") return told(config.cpu_parts);
  const auto it = config.gpu_parts.find(index);
  return it == config.gpu_parts.end()
             ? std::vector<LogicalDeviceConfiguration>()
             : told(it->second);
}

void set_device_list(const std::string& device_list, Site site) {
  const char* what = "config::set_device_list";
  std::function<void(RuntimeConfig&)> change;  // unused when too late
  if (!DeviceManager::initialised()) {
    change =
        device_list_change(what, device_list, DeviceManager::planned_config());
  }
  DeviceManager::configure(what, site, change);
}

void set_host_cores(const std::string& cores, Site site) {
  RuntimeConfig would = DeviceManager::planned_config();
  would.host_cores = cores;
  check_layout(would);
  DeviceManager::configure("config::set_host_cores", site,
                           [cores](RuntimeConfig& c) { c.host_cores = cores; });
}

}  // namespace berth::config

namespace berth {

std::function<void(RuntimeConfig&)> device_list_change(
    const char* what, const std::string& device_list, RuntimeConfig would) {
  std::vector<DevicePart> cpus;
  int gpus = 0;
  for (const DeviceListEntry& e : parse_device_list(device_list)) {
    if (e.type == "CPU") {
      DevicePart part;
      part.cores = e.cores;
      cpus.insert(cpus.end(), static_cast<size_t>(e.count), part);
    } else if (e.type == "GPU" && e.cores.empty()) {
      gpus += e.count;
    } else {
      throw errors::InvalidArgument(fmt::format(
          "{}: '{}' has an entry of type {}{}; expected CPUs, and GPUs without "
          "cores",
          what, device_list, e.type, e.cores.empty() ? "" : " with cores"));
    }
  }
  would.cpu_parts = cpus;
  lay_out_cpus(would, CoreSet::allowed());
  const int real = config::real_gpus(would);
  if (real > 0 && gpus > real) {
    throw errors::InvalidArgument(fmt::format(
        "{}: '{}' asks for {} GPUs; expected at most the {} of this machine, "
        "or simulated ones alone (config::set_simulated_devices, BERTH_SIM)",
        what, device_list, gpus, real));
  }
  return [cpus, gpus, real](RuntimeConfig& c) {
    c.cpu_parts = cpus;
    c.simulated_gpus = real > 0 ? 0 : gpus;
    if (real == 0) return;
    c.visible_gpus.emplace(static_cast<size_t>(gpus));
    std::iota(c.visible_gpus->begin(), c.visible_gpus->end(), 0);
  };
}

}  // namespace berth
