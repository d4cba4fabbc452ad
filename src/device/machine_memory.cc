#include "device/machine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include "base/immortal.h"
#include "berth/errors.h"
#include "device/allocator.h"

namespace berth {

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// The number after `key` in lines of "key number"; "" is the first word.
std::optional<size_t> number_in(const std::string& file,
                                const std::string& key) {
  std::ifstream in(file);
  std::string word;
  size_t n = 0;
  if (!key.empty()) {
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      if (words >> word >> n && word == key) return n;
    }
    return std::nullopt;
  }
  if (in >> n) return n;  // "max" is not a number
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *used, *cache;
};

// What the group in `folder` has left.
std::optional<size_t> left_in(const std::string& folder, const GroupFiles& f) {
  const auto limit = number_in(folder + "/" + f.limit, "");
  const auto used = number_in(folder + "/" + f.used, "");
  if (!limit || !used) return std::nullopt;
  const size_t cache = number_in(folder + "/memory.stat", f.cache).value_or(0);
  const size_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

// The least limit of a group and those that it is in, up to the mount.
void least_of_groups(const std::string& mount, std::string path,
                     const GroupFiles& files, std::optional<size_t>* least) {
  while (true) {
    if (const auto left = left_in(mount + path, files)) {
      *least = std::min(least->value_or(*left), *left);
    }
    if (path.empty()) return;
    path.resize(path.find_last_of('/'));
  }
}

}  // namespace

size_t memory_left_bytes(const std::string& root) {
  std::optional<size_t> least;
  if (const auto kib = number_in(root + "/proc/meminfo", "MemAvailable:")) {
    least = *kib * 1024;
  }
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "4:memory:/a/b" of version 1, "0::/a/b" of version 2.
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/' || path == "/") path.clear();
    if (kinds.empty()) {
      least_of_groups(root + "/sys/fs/cgroup", path,
                      {"memory.max", "memory.current", "inactive_file"},
                      &least);
    } else if (("," + kinds + ",").find(",memory,") != line.npos) {
      least_of_groups(root + "/sys/fs/cgroup/memory", path,
                      {"memory.limit_in_bytes", "memory.usage_in_bytes",
                       "total_inactive_file"},
                      &least);
    }
  }
  return least.value_or(0);
}

namespace {
struct DefaultLimits {
  std::mutex mutex;
  std::map<const Allocator*, size_t> of;
};
DefaultLimits& default_limits() {
  static auto& limits = immortal<DefaultLimits>();
  return limits;
}
}  // namespace

void note_default_limit(const Allocator& a) {
  DefaultLimits& limits = default_limits();
  std::lock_guard lock(limits.mutex);
  limits.of[&a] = a.info().limit_bytes;
}

bool has_default_limit(const Allocator& a, size_t limit) {
  DefaultLimits& limits = default_limits();
  std::lock_guard lock(limits.mutex);
  const auto it = limits.of.find(&a);
  return limit > 0 && it != limits.of.end() && it->second == limit;
}

size_t default_cpu_limit_bytes(size_t left) {
  if (left == 0) return 0;
  const size_t margin = std::min(std::max(left / 16, 128 * kMiB), left / 2);
  return std::max((left - margin) / kMiB, size_t{1}) * kMiB;
}

size_t parse_memory_limit(std::string_view what, std::string_view text) {
  if (text.empty()) return 0;
  if (text == "none") return kNoMemoryLimit;
  size_t n = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), n);
  const std::string_view unit(
      end, static_cast<size_t>(text.data() + text.size() - end));
  const int shift = unit.empty()    ? 0
                    : unit == "KiB" ? 10
                    : unit == "MiB" ? 20
                    : unit == "GiB" ? 30
                    : unit == "TiB" ? 40
                                    : -1;
  if (error != std::errc() || shift < 0 || n == 0 ||
      n > (size_t{1} << 62 >> shift)) {
    throw errors::InvalidArgument(
        fmt::format("{} is '{}'; expected a number of bytes of at least 1, as "
                    "'12GiB' or '512MiB', or 'none'",
                    what, text));
  }
  return n << shift;
}

}  // namespace berth
