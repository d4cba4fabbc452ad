#include "device/runtime_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "berth/errors.h"

namespace berth {

namespace {

constexpr int kMostOfAnEntry = 60;

template <class T>
bool parse_integer(std::string_view s, T* out) {
  const auto [p, e] = std::from_chars(s.data(), s.data() + s.size(), *out);
  return e == std::errc() && p == s.data() + s.size();
}

[[noreturn]] void bad_entry(std::string_view text, std::string_view entry) {
  throw errors::InvalidArgument(fmt::format(
      "device list '{}': entry '{}' is not understood; expected a comma list "
      "of 'CPUx2', 'GPUx2', 'CPU[0]' or 'CPU[1-3]'",
      text, entry));
}

DeviceListEntry parse_entry(std::string_view text, std::string_view entry) {
  DeviceListEntry e;
  size_t i = 0;
  while (i < entry.size() && entry[i] != 'x' && entry[i] != '[') {
    const char c = entry[i++];
    if (c >= 'a' && c <= 'z') {
      e.type += static_cast<char>(c - 'a' + 'A');
    } else if (c >= 'A' && c <= 'Z') {
      e.type += c;
    } else {
      bad_entry(text, entry);
    }
  }
  if (e.type.empty()) bad_entry(text, entry);
  if (i == entry.size()) return e;
  if (entry[i] == 'x') {
    const std::string_view count = entry.substr(i + 1);
    const bool digits =
        !count.empty() && count.find_first_not_of("0123456789") == count.npos;
    if (!digits) bad_entry(text, entry);
    if (!parse_integer(count, &e.count) || e.count > kMostOfAnEntry) {
      throw errors::InvalidArgument(fmt::format(
          "device list '{}': entry '{}' is not understood: {} devices are "
          "too many; expected at most {}",
          text, entry, count, kMostOfAnEntry));
    }
  } else {
    if (entry.back() != ']' || entry.size() - i < 3) bad_entry(text, entry);
    e.cores = entry.substr(i + 1, entry.size() - i - 2);
  }
  return e;
}

template <class T>
void read_number(const char* variable, T* out) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return;
  T parsed{};
  if (!parse_integer(std::string_view(value), &parsed) || parsed < T{0}) {
    throw errors::InvalidArgument(
        fmt::format("environment variable {} is '{}'; expected a whole number "
                    "of at least 0",
                    variable, value));
  }
  *out = parsed;
}

std::vector<DeviceListEntry> parse_simulated(const char* text) {
  try {
    return parse_device_list(text);
  } catch (const errors::InvalidArgument& e) {
    throw errors::InvalidArgument(
        fmt::format("environment variable BERTH_SIM: {}", e.what()));
  }
}

// BERTH_SIM_*.
void read_simulation(RuntimeConfig* config) {
  if (const char* sim = std::getenv("BERTH_SIM"); sim && *sim) {
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
  if (const char* names = std::getenv("BERTH_SIM_MISSING"); names && *names) {
    std::string_view rest = names;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (comma > 0) {
        config->sim_missing_kernels.emplace_back(rest.substr(0, comma));
      }
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  if (const char* c = std::getenv("BERTH_SIM_CLOCK"); c && *c) {
    const std::string_view value = c;
    if (value != "virtual" && value != "real") {
      throw errors::InvalidArgument(
          fmt::format("environment variable BERTH_SIM_CLOCK is '{}'; expected "
                      "'virtual' or 'real'",
                      value));
    }
    config->sim_real_clock = value == "real";
  }
  if (const char* f = std::getenv("BERTH_SIM_FAULTS")) config->sim_faults = f;
}

}  // namespace

std::vector<DeviceListEntry> parse_device_list(std::string_view text) {
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
        list.push_back(parse_entry(text, entry));
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
  if (const char* k = std::getenv("BERTH_CPU_KERNELS"); k && *k) {
    const std::string_view value = k;
    if (value != "reference" && value != "all") {
      throw errors::InvalidArgument(fmt::format(
          "environment variable BERTH_CPU_KERNELS is '{}'; expected "
          "'reference' or 'all'",
          value));
    }
    config.cpu_reference_only = value == "reference";
  }
  return config;
}

}  // namespace berth
