#include "device/runtime_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/environment.h"
#include "berth/errors.h"
#include "device/machine_memory.h"

namespace berth {

namespace {

template <class T>
bool parse_integer(std::string_view s, T* out) {
  const auto [p, e] = std::from_chars(s.data(), s.data() + s.size(), *out);
  return e == std::errc() && p == s.data() + s.size();
}

[[noreturn]] void bad_entry(std::string_view text, std::string_view entry,
                            int most) {
  throw errors::InvalidArgument(fmt::format(
      "device list '{}': entry '{}' is not understood; expected a comma list "
      "of 'CPUx2', 'GPUx2', 'CPU[0]' or 'CPU[1-3]', at least 1 and at most {} "
      "devices each",
      text, entry, most));
}

DeviceListEntry parse_entry(std::string_view text, std::string_view entry,
                            int most) {
  DeviceListEntry e;
  size_t i = 0;
  while (i < entry.size() && entry[i] != 'x' && entry[i] != '[') {
    const char c = entry[i++];
    if (c >= 'a' && c <= 'z') {
      e.type += static_cast<char>(c - 'a' + 'A');
    } else if (c >= 'A' && c <= 'Z') {
      e.type += c;
    } else {
      bad_entry(text, entry, most);
    }
  }
  if (e.type.empty()) bad_entry(text, entry, most);
  if (i == entry.size()) return e;
  if (entry[i] == 'x') {
    if (!parse_integer(entry.substr(i + 1), &e.count) || e.count < 1 ||
        e.count > most) {
      bad_entry(text, entry, most);
    }
  } else {
    if (entry.back() != ']' || entry.size() - i < 3)
      bad_entry(text, entry, most);
    e.cores = entry.substr(i + 1, entry.size() - i - 2);
  }
  return e;
}

template <class T>
void read_number(const char* variable, T* out) {
  const std::string value = environment(variable);
  if (value.empty()) return;
  T parsed{};
  if (!parse_integer(std::string_view(value), &parsed) || parsed < T{0}) {
    throw errors::InvalidArgument(
        fmt::format("environment variable {} is '{}'; expected a whole number "
                    "of at least 0",
                    variable, value));
  }
  *out = parsed;
}

std::vector<DeviceListEntry> parse_simulated(const std::string& text) {
  try {
    return parse_device_list(text);
  } catch (const errors::InvalidArgument& e) {
    throw errors::InvalidArgument(
        fmt::format("environment variable BERTH_SIM: {}", e.what()));
  }
}

// BERTH_SIM_*.
void read_simulation(RuntimeConfig* config) {
  if (const std::string sim = environment("BERTH_SIM"); !sim.empty()) {
    for (const DeviceListEntry& e : parse_simulated(sim)) {
      if (e.type != "GPU" || !e.cores.empty()) {
        throw errors::InvalidArgument(fmt::format(
            "environment variable BERTH_SIM is '{}'; only accelerators can be "
            "simulated, expected for example 'GPUx2'",
            sim));
      }
      config->simulated_gpus += e.count;
    }
  }
  read_number("BERTH_SIM_SEED", &config->sim_seed);
  const std::string names = environment("BERTH_SIM_MISSING");
  for (std::string_view rest = names; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) {
      config->sim_missing_kernels.emplace_back(rest.substr(0, comma));
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  config->sim_real_clock =
      environment_choice("BERTH_SIM_CLOCK", {"virtual", "real"}) == "real";
  config->sim_reference_only =
      environment_choice("BERTH_SIM_KERNELS", {"all", "reference"}) ==
      "reference";
  config->sim_faults = environment("BERTH_SIM_FAULTS");
}

}  // namespace

std::vector<DeviceListEntry> parse_device_list(std::string_view text,
                                               int most_of_one_entry) {
  std::vector<DeviceListEntry> list;
  size_t depth_start = 0;
  bool inside = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') inside = true;
    if (i < text.size() && text[i] == ']') inside = false;
    if (i == text.size() || (text[i] == ',' && !inside)) {
      std::string_view entry = text.substr(depth_start, i - depth_start);
      while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
      while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
      if (!entry.empty() || !text.empty()) {
        list.push_back(parse_entry(text, entry, most_of_one_entry));
      }
      depth_start = i + 1;
    }
  }
  return list;
}

RuntimeConfig runtime_config_from_environment() {
  RuntimeConfig config;
  read_simulation(&config);
  read_number("BERTH_CPU_WORKERS", &config.cpu_workers);
  if (config.cpu_workers > 32) {
    throw errors::InvalidArgument(
        fmt::format("environment variable BERTH_CPU_WORKERS is {}; expected at "
                    "most 32",
                    config.cpu_workers));
  }
  config.cpu_memory_limit_bytes = parse_memory_limit(
      "environment variable BERTH_CPU_MEMORY", environment("BERTH_CPU_MEMORY"));
  config.cpu_reference_only =
      environment_choice("BERTH_CPU_KERNELS", {"all", "reference"}) ==
      "reference";
  return config;
}

}  // namespace berth
