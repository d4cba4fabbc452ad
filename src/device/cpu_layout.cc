#include "device/cpu_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "berth/errors.h"

namespace berth {

namespace {

constexpr int kMostWorkers = ThreadPool::kMaxChunks;

CoreSet without(const CoreSet& all, const CoreSet& taken) {
  std::vector<int> left;
  for (int core : all.cores()) {
    if (!taken.contains(core)) left.push_back(core);
  }
  return CoreSet(std::move(left));
}

CoreSet both(const CoreSet& a, const CoreSet& b) {
  std::vector<int> cores = a.cores();
  cores.insert(cores.end(), b.cores().begin(), b.cores().end());
  return CoreSet(std::move(cores));
}

CoreSet named_cores(const std::string& text, const std::string& who,
                    const CoreSet& allowed) {
  const CoreSet cores = CoreSet::parse(text);
  if (!allowed.contains(cores)) {
    throw errors::InvalidArgument(
        fmt::format("{}: cores \"{}\" asked for; this process may use \"{}\": "
                    "name some of these",
                    who, text, allowed.str()));
  }
  return cores;
}

class Layout {
 public:
  Layout(const RuntimeConfig& config, const CoreSet& allowed)
      : config_(config), allowed_(allowed) {}

  CpuLayout run() {
    if (!config_.host_cores.empty()) {
      out_.host = named_cores(config_.host_cores, "host cores", allowed_);
      taken_ = out_.host;
    }
    std::vector<DevicePart> parts = config_.cpu_parts;
    if (parts.empty()) {
      DevicePart all;
      all.workers = config_.cpu_workers;
      parts.push_back(all);
    }
    out_.devices.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) take_named(parts[i], i);
    cut_rest(parts);
    for (size_t i = 0; i < parts.size(); ++i) settle(parts[i], i);
    return std::move(out_);
  }

 private:
  static std::string name_of_part(size_t i) { return fmt::format("CPU:{}", i); }

  void take_named(const DevicePart& part, size_t i) {
    CpuLayout::Part& to = out_.devices[i];
    to.shared = part.shared;
    if (part.cores.empty()) return;
    to.cores = named_cores(part.cores, name_of_part(i), allowed_);
    if (part.shared) return;
    if (taken_.overlaps(to.cores)) {
      throw errors::InvalidArgument(fmt::format(
          "{}: cores \"{}\" overlap those of another device or of the host; "
          "expected disjoint sets: set .shared where cores are shared",
          name_of_part(i), part.cores));
    }
    taken_ = both(taken_, to.cores);
  }

  // Parts that name nothing: those that share use all, others cut the rest.
  void cut_rest(const std::vector<DevicePart>& parts) {
    std::vector<size_t> open;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].cores.empty()) continue;
      if (parts[i].shared) {
        out_.devices[i].cores = allowed_;
      } else {
        open.push_back(i);
      }
    }
    if (open.empty()) return;
    const CoreSet rest = without(allowed_, taken_);
    const int n = static_cast<int>(open.size());
    if (rest.empty() && out_.host == allowed_) {
      throw errors::InvalidArgument(fmt::format(
          "host cores: \"{}\" are all that this process may use, and leave "
          "none for the CPU devices; expected fewer",
          config_.host_cores));
    }
    if (rest.size() < n) {
      throw errors::InvalidArgument(fmt::format(
          "{} CPU devices asked for, but only {} cores (\"{}\") are left for "
          "them; expected at most one device per core: set .shared = true to "
          "let devices share cores",
          n, rest.size(), rest.str()));
    }
    const std::vector<CoreSet> cut = rest.split(n);
    for (int i = 0; i < n; ++i) out_.devices[open[i]].cores = cut[i];
  }

  void settle(const DevicePart& part, size_t i) {
    CpuLayout::Part& to = out_.devices[i];
    if (part.workers < 0 || part.workers > kMostWorkers) {
      throw errors::InvalidArgument(
          fmt::format("{}: {} workers asked for; expected 0 (one per core) to "
                      "{}",
                      name_of_part(i), part.workers, kMostWorkers));
    }
    to.workers = part.workers > 0 ? part.workers : to.cores.size();
    to.memory_limit_bytes = part.memory_limit_bytes > 0
                                ? part.memory_limit_bytes
                                : config_.cpu_memory_limit_bytes;
  }

  const RuntimeConfig& config_;
  const CoreSet& allowed_;
  CpuLayout out_;
  CoreSet taken_;
};

}  // namespace

CpuLayout lay_out_cpus(const RuntimeConfig& config, const CoreSet& allowed) {
  return Layout(config, allowed).run();
}

}  // namespace berth
