#include "base/core_set.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "base/immortal.h"
#include "base/pretended_cores.h"
#include "berth/errors.h"

namespace berth {
namespace {

struct MaskFree {
  void operator()(cpu_set_t* mask) const { CPU_FREE(mask); }
};

int parse_core(std::string_view piece, std::string_view whole) {
  int value = 0;
  auto [end, error] =
      std::from_chars(piece.data(), piece.data() + piece.size(), value);
  if (error != std::errc() || end != piece.data() + piece.size() || value < 0 ||
      value > CoreSet::kMaxCore) {
    throw errors::InvalidArgument(fmt::format(
        "core set \"{}\": \"{}\" is not a core number; expected numbers from "
        "0 to {} such as \"0-3,6\"",
        whole, piece, CoreSet::kMaxCore));
  }
  return value;
}

std::vector<int> affinity_cores() {
  // The kernel refuses masks shorter than its own, so grow until it accepts.
  for (int count = 1024; count <= CoreSet::kMaxCore + 1; count *= 2) {
    std::unique_ptr<cpu_set_t, MaskFree> mask(CPU_ALLOC(count));
    const size_t bytes = CPU_ALLOC_SIZE(count);
    if (mask == nullptr || sched_getaffinity(0, bytes, mask.get()) != 0) {
      continue;
    }
    std::vector<int> cores;
    for (int i = 0; i < count; ++i) {
      if (CPU_ISSET_S(i, bytes, mask.get())) cores.push_back(i);
    }
    return cores;
  }
  return {0};
}

struct Place {
  int order;     // position in the topology's depth-first order
  int physical;  // number of the physical core
};

// One entry per processing unit; empty when hwloc cannot read the machine.
std::map<int, Place> read_topology() {
  std::map<int, Place> places;
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return places;
  if (hwloc_topology_load(topology) == 0) {
    const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    for (int i = 0; i < count; ++i) {
      hwloc_obj_t unit = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, i);
      hwloc_obj_t core =
          hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
      const int physical =
          core != nullptr ? static_cast<int>(core->logical_index) : i;
      places[static_cast<int>(unit->os_index)] = {i, physical};
    }
  }
  hwloc_topology_destroy(topology);
  return places;
}

const std::map<int, Place>& topology() {
  static const auto& places = immortal<std::map<int, Place>>(read_topology());
  return places;
}

Place place_of(int core) {
  auto it = topology().find(core);
  return it != topology().end() ? it->second
                                : Place{1 << 20 | core, 1 << 20 | core};
}

std::optional<double> read_quota(const std::string& dir) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(dir + "/cpu.max"); v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return std::nullopt;
  } else {
    std::ifstream v1(dir + "/cpu.cfs_quota_us");
    std::ifstream v1_period(dir + "/cpu.cfs_period_us");
    if (!(v1 >> quota && v1_period >> period) || period <= 0) {
      return std::nullopt;
    }
  }
  double microseconds = 0;
  auto [end, error] =
      std::from_chars(quota.data(), quota.data() + quota.size(), microseconds);
  (void)end;
  if (error != std::errc() || microseconds <= 0) return std::nullopt;
  return microseconds / period;
}

double own_quota_cores() {
  double best = 0;
  auto take = [&](double cores) {
    if (cores > 0 && (best == 0 || cores < best)) best = cores;
  };
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (names.empty()) {
      take(cgroup_quota_cores("/sys/fs/cgroup", path));
    } else if (("," + names + ",").find(",cpu,") != std::string::npos) {
      take(cgroup_quota_cores("/sys/fs/cgroup/cpu", path));
      take(cgroup_quota_cores("/sys/fs/cgroup/" + names, path));
    }
  }
  return best;
}

}  // namespace

CoreSet::CoreSet(std::vector<int> cores) : cores_(std::move(cores)) {
  std::sort(cores_.begin(), cores_.end());
  cores_.erase(std::unique(cores_.begin(), cores_.end()), cores_.end());
  if (!cores_.empty() && (cores_.front() < 0 || cores_.back() > kMaxCore)) {
    throw errors::InvalidArgument(fmt::format(
        "core set: core {} is out of range; expected 0 to {}",
        cores_.front() < 0 ? cores_.front() : cores_.back(), kMaxCore));
  }
}

CoreSet CoreSet::parse(std::string_view text) {
  std::vector<int> cores;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string_view piece = text.substr(at, comma - at);
    const size_t dash = piece.find('-');
    const int low = parse_core(piece.substr(0, dash), text);
    const int high = dash == std::string_view::npos
                         ? low
                         : parse_core(piece.substr(dash + 1), text);
    if (high < low || comma + 1 == text.size()) {
      throw errors::InvalidArgument(fmt::format(
          "core set \"{}\": \"{}\" {}; expected a form such as \"0-3,6\"", text,
          piece, high < low ? "counts down" : "ends in a comma"));
    }
    for (int core = low; core <= high; ++core) cores.push_back(core);
    at = comma + 1;
  }
  return CoreSet(std::move(cores));
}

CoreSet CoreSet::allowed() {
  if (const CoreSet* all = pretended_cores()) return *all;
  std::vector<int> cores = affinity_cores();
  const double quota = own_quota_cores();
  const size_t keep =
      quota > 0 ? std::max(1, static_cast<int>(quota + 1e-6)) : cores.size();
  if (keep < cores.size()) {
    std::map<int, int> seen;  // physical core -> units taken before this one
    std::vector<std::pair<std::pair<int, int>, int>> ranked;
    for (int core : cores) {
      const Place place = place_of(core);
      ranked.push_back({{seen[place.physical]++, place.order}, core});
    }
    std::sort(ranked.begin(), ranked.end());
    cores.clear();
    for (size_t i = 0; i < keep; ++i) cores.push_back(ranked[i].second);
  }
  return CoreSet(std::move(cores));
}

bool CoreSet::contains(int core) const {
  return std::binary_search(cores_.begin(), cores_.end(), core);
}

bool CoreSet::contains(const CoreSet& other) const {
  return std::includes(cores_.begin(), cores_.end(), other.cores_.begin(),
                       other.cores_.end());
}

bool CoreSet::overlaps(const CoreSet& other) const {
  return std::any_of(cores_.begin(), cores_.end(),
                     [&](int core) { return other.contains(core); });
}

std::string CoreSet::str() const {
  std::string text;
  for (size_t i = 0; i < cores_.size();) {
    size_t last = i;
    while (last + 1 < cores_.size() && cores_[last + 1] == cores_[last] + 1) {
      ++last;
    }
    if (!text.empty()) text += ',';
    text += fmt::format("{}", cores_[i]);
    if (last > i) text += fmt::format("-{}", cores_[last]);
    i = last + 1;
  }
  return text;
}

std::vector<CoreSet> CoreSet::split(int n) const {
  if (n < 1 || n > size()) {
    throw errors::InvalidArgument(fmt::format(
        "cannot cut the {} cores \"{}\" into {} sets; expected 1 to {} (more "
        "devices than cores need .shared = true)",
        size(), str(), n, size()));
  }
  std::vector<int> ordered = cores_;
  std::stable_sort(ordered.begin(), ordered.end(), [](int a, int b) {
    return place_of(a).order < place_of(b).order;
  });
  std::vector<CoreSet> sets;
  for (int i = 0; i < n; ++i) {
    const int begin = static_cast<int>(int64_t{size()} * i / n);
    const int end = static_cast<int>(int64_t{size()} * (i + 1) / n);
    sets.emplace_back(
        std::vector<int>(ordered.begin() + begin, ordered.begin() + end));
  }
  return sets;
}

double cgroup_quota_cores(const std::string& root, const std::string& path) {
  double best = 0;
  // A container sees its own group as the root, so the walk ends there even
  // when the printed path does not exist below the mount.
  for (std::string at = path;;) {
    while (!at.empty() && at.back() == '/') at.pop_back();
    if (auto cores = read_quota(root + at)) {
      if (best == 0 || *cores < best) best = *cores;
    }
    if (at.empty()) return best;
    const size_t slash = at.rfind('/');
    at.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool bind_current_thread(const CoreSet& cores) {
  if (cores.empty()) return false;
  if (pretended_cores()) return true;
  const int count = cores.cores().back() + 1;
  std::unique_ptr<cpu_set_t, MaskFree> mask(CPU_ALLOC(count));
  if (mask == nullptr) return false;
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, mask.get());
  for (int core : cores.cores()) CPU_SET_S(core, bytes, mask.get());
  return sched_setaffinity(0, bytes, mask.get()) == 0;
}

CoreGuard::CoreGuard(int core) {
  static_assert(sizeof before_ >= (CoreSet::kMaxCore + 1) / 8);
  CPU_ZERO_S(sizeof before_, before_);
  if (pretended_cores() || sched_getaffinity(0, sizeof before_, before_) != 0 ||
      !CPU_ISSET_S(static_cast<size_t>(core), sizeof before_, before_)) {
    return;
  }
  // Only as much of the mask as there must be.
  const size_t bytes = CPU_ALLOC_SIZE(core + 1);
  cpu_set_t mask[sizeof before_ / sizeof(cpu_set_t)];
  CPU_ZERO_S(bytes, mask);
  CPU_SET_S(static_cast<size_t>(core), bytes, mask);
  holds_ = sched_setaffinity(0, bytes, mask) == 0;
}

CoreGuard::~CoreGuard() {
  if (holds_) sched_setaffinity(0, sizeof before_, before_);
}

CoreSet current_thread_cores() {
  const CoreSet* all = pretended_cores();
  return all ? *all : CoreSet(affinity_cores());
}

bool current_thread_within(const CoreSet& cores) {
  if (const CoreSet* all = pretended_cores()) return cores.contains(*all);
  cpu_set_t mask[(CoreSet::kMaxCore + 1) / CPU_SETSIZE];
  CPU_ZERO_S(sizeof mask, mask);
  if (sched_getaffinity(0, sizeof mask, mask) != 0) return false;
  int inside = 0;
  for (int core : cores.cores()) {
    inside += CPU_ISSET_S(static_cast<size_t>(core), sizeof mask, mask) ? 1 : 0;
  }
  return inside == CPU_COUNT_S(sizeof mask, mask);
}

}  // namespace berth
