#include "distribute/strategy/device_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth::distribute {

namespace {

constexpr std::string_view kPhysical = "/physical_device:";

std::vector<Device*> of_type(const DeviceManager& m, std::string_view type) {
  std::vector<Device*> found;
  for (Device* d : m.by_preference()) {
    if (d->type() == type) found.push_back(d);
  }
  return found;
}

// The logical devices of physical GPU `index`; none when it is hidden.
std::vector<Device*> parts_of_gpu(const DeviceManager& m, int index) {
  const RuntimeConfig& config = m.config();
  const std::vector<Device*> all = of_type(m, "GPU");
  std::vector<int> shown;
  for (int i = 0; i < static_cast<int>(all.size()); ++i) shown.push_back(i);
  size_t first = 0;
  for (int i : config.visible_gpus.value_or(shown)) {
    const auto cut = config.gpu_parts.find(i);
    const size_t parts = cut == config.gpu_parts.end() ? 1 : cut->second.size();
    if (i == index) {
      const size_t last = std::min(first + parts, all.size());
      return {all.begin() + static_cast<std::ptrdiff_t>(std::min(first, last)),
              all.begin() + static_cast<std::ptrdiff_t>(last)};
    }
    first += parts;
  }
  return {};
}

// The logical device of a physical device; null unless there is exactly one.
Device* physical(const DeviceManager& m, const std::string& text,
                 const std::string& what, const std::string& where) {
  const DeviceName name = DeviceName::parse(text.substr(kPhysical.size()));
  const int index = name.id.value_or(0);
  std::vector<Device*> parts;
  if (name.type == "GPU") parts = parts_of_gpu(m, index);
  if (name.type == "CPU" && index == 0) parts = of_type(m, "CPU");
  if (parts.size() <= 1) return parts.empty() ? nullptr : parts[0];
  std::string names;
  for (const Device* d : parts) {
    names += (names.empty() ? "\"" : ", \"") + d->short_name() + "\"";
  }
  throw errors::InvalidArgument(fmt::format(
      "{}: the physical device \"{}\" is cut into {} devices{}; expected one "
      "of them: {}",
      what, text, parts.size(), where, names));
}

}  // namespace

std::vector<Device*> devices_named(const std::vector<std::string>& names,
                                   const std::string& what, Site site) {
  const DeviceManager& m = DeviceManager::get(what, site);
  const std::string where = where_text(nullptr, site);
  if (names.empty()) {
    std::vector<Device*> gpus = of_type(m, "GPU");
    return gpus.empty() ? of_type(m, "CPU") : gpus;
  }
  std::vector<Device*> devices;
  for (const std::string& text : names) {
    Device* d = nullptr;
    if (text.starts_with(kPhysical)) {
      d = physical(m, text, what, where);
    } else if (const DeviceName name = DeviceName::parse(text); name.type) {
      d = m.find(name);
    }
    if (d == nullptr) {
      throw errors::InvalidArgument(
          fmt::format("{}: there is no device \"{}\"{}; expected some of {}",
                      what, text, where, m.list()));
    }
    if (std::find(devices.begin(), devices.end(), d) != devices.end()) {
      throw errors::InvalidArgument(fmt::format(
          "{}: \"{}\" is {}, which is in the list already{}; expected each "
          "device once",
          what, text, d->short_name(), where));
    }
    devices.push_back(d);
  }
  return devices;
}

}  // namespace berth::distribute
