// berth devices: the devices of this process, and why it has them.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/bytes_text.h"
#include "base/core_set.h"
#include "base/environment.h"
#include "base/pretended_cores.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "cli/commands.h"
#include "device/cpu_layout.h"
#include "device/device_manager.h"
#include "device/plugin.h"

namespace berth::cli {

namespace {

using Json = nlohmann::ordered_json;

struct DevicesArguments {
  std::string devices;
  bool json = false, why = false;
};

struct Logical {
  std::string name, type, description, physical, cores, why;
  int workers = 0;
  size_t memory_limit_bytes = 0;
  bool simulated = false, is_default = false;
};

struct Physical {
  std::string name, type, why;
  bool simulated = false, visible = false;
};

struct Absent {
  std::string type, why;
};

struct PlugIn {
  std::string name, path, why;  // why it was not opened, or has no devices
  bool opened = false;
  size_t devices = 0;
};

std::string count(size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

// Returns "BERTH_SIM=GPUx2", or "" when it is not set.
std::string setting(const char* variable) {
  const std::string value = environment(variable);
  return value.empty() ? "" : fmt::format("{}={}", variable, value);
}

// Explains the answers. Must be made before the devices, whose creation binds
// this thread to cores.
class Survey {
 public:
  explicit Survey(std::string list)
      : list_(std::move(list)), bound_(current_thread_cores()) {
    if (!list_.empty()) config::set_device_list(list_);
    config_ = DeviceManager::planned_config();
    allowed_ = CoreSet::allowed();
    layout_ = lay_out_cpus(config_, allowed_);
  }

  std::vector<Physical> physical() const {
    std::vector<Physical> all;
    const auto visible = config::get_visible_devices();
    const std::vector<std::string> found_by = finders();
    for (const auto& d : config::list_physical_devices()) {
      all.push_back(
          {d.name, d.device_type,
           d.device_type == "CPU" ? why_cores()
           : d.simulated          ? why_simulated()
                                  : found_by.at(all.size()) + " found it",
           d.simulated,
           std::find(visible.begin(), visible.end(), d) != visible.end()});
    }
    return all;
  }

  std::vector<Logical> logical() const {
    std::vector<Logical> all;
    DeviceManager& m = DeviceManager::get();
    const auto gpus = lay_out_gpus(
        config_, static_cast<int>(config::list_physical_devices("GPU").size()));
    for (Device* d : m.devices()) {
      Logical l = {d->str(), d->type(), d->description()};
      l.simulated = d->simulated();
      l.is_default = d == &m.default_device();
      l.memory_limit_bytes = d->allocator().info().limit_bytes;
      if (d->type() == "CPU") {
        add_cores(static_cast<size_t>(*d->name().id), &l);
      } else if (d->type() == "GPU") {
        add_part(gpus.at(static_cast<size_t>(*d->name().id)), gpus, &l);
      } else {
        l.why = "a backend provides it";
      }
      all.push_back(std::move(l));
    }
    return all;
  }

  std::vector<PlugIn> plugins() const {
    const BackendRegistry& registry = DeviceManager::get().backends();
    std::vector<PlugIn> all;
    for (const PluginReport& r : registry.plugins()) {
      PlugIn p{r.name, r.path, r.why, r.why.empty()};
      for (const auto& b : registry.backends()) {
        if (!p.opened || b->name() != p.name) continue;
        p.devices = b->find_devices(config_).size();
        p.why = b->why_none(config_);
      }
      all.push_back(std::move(p));
    }
    return all;
  }

  std::vector<Absent> absent() const {
    std::vector<Absent> all;
    std::string reasons;
    for (const PlugIn& p : plugins()) {
      if (!p.opened) {
        all.push_back({p.path, p.why});
      } else if (p.devices == 0 && !p.why.empty()) {
        reasons += fmt::format("{}: {}; ", p.name, p.why);
      }
    }
    if (!config::list_physical_devices("GPU").empty()) return all;
    if (reasons.empty()) reasons = "no plug-in for GPUs was found; ";
    all.push_back(
        {"GPU",
         reasons + (list_.empty() ? "BERTH_SIM is not set: BERTH_SIM=GPUx2 "
                                    "simulates two"
                                  : "--devices " + list_ + " names none")});
    return all;
  }

 private:
  // The backend of each physical device.
  std::vector<std::string> finders() const {
    std::vector<std::string> names;
    for (const auto& b : DeviceManager::get().backends().backends()) {
      names.insert(names.end(), b->find_devices(config_).size(), b->name());
    }
    return names;
  }

  std::string why_cores() const {
    if (pretended_cores()) {
      return setting("BERTH_CORES") + ": the machine may have others";
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    std::string s =
        fmt::format("the machine has {}, this process may use {}",
                    count(static_cast<size_t>(online), "core"), bound_.str());
    if (allowed_.size() < bound_.size()) {
      s += fmt::format("; the CPU quota of its control group leaves {}: {}",
                       allowed_.size(), allowed_.str());
    }
    return s;
  }

  std::string why_simulated() const {
    const std::string by = setting("BERTH_SIM");
    return fmt::format("simulated: {}", !list_.empty() ? "--devices " + list_
                                        : by.empty()
                                            ? "asked for by the program"
                                            : by);
  }

  void add_part(const GpuPart& part, const std::vector<GpuPart>& all,
                Logical* l) const {
    l->physical = fmt::format("/physical_device:GPU:{}", part.physical);
    const auto parts = std::count_if(
        all.begin(), all.end(),
        [&](const GpuPart& p) { return p.physical == part.physical; });
    l->why = l->simulated ? why_simulated() : "a GPU that is there is a device";
    if (parts > 1) l->why += fmt::format("; one of {} parts", parts);
  }

  void add_cores(size_t i, Logical* l) const {
    const CpuLayout::Part& part = layout_.devices.at(i);
    l->physical = "/physical_device:CPU:0";
    l->cores = part.cores.str();
    l->workers = part.workers;
    const std::string workers = setting("BERTH_CPU_WORKERS");
    if (layout_.devices.size() > 1) {
      l->why = fmt::format("part {} of {} of cores {} ({})", i + 1,
                           layout_.devices.size(), allowed_.str(),
                           list_.empty() ? "configured" : "--devices " + list_);
    } else {
      l->why = "the CPU always is a device; it owns every core that " +
               std::string("this process may use");
    }
    if (layout_.devices.size() == 1 && config_.cpu_workers > 0) {
      l->why += fmt::format("; {} by {}", count(part.workers, "worker"),
                            workers.empty() ? "the program" : workers);
    }
  }

  std::string list_;
  CoreSet bound_, allowed_;
  RuntimeConfig config_;
  CpuLayout layout_;
};

Json devices_json(const std::vector<Physical>& physical,
                  const std::vector<Logical>& logical,
                  const std::vector<Absent>& absent,
                  const std::vector<PlugIn>& plugins) {
  Json all = {{"logical", Json::array()},
              {"physical", Json::array()},
              {"absent", Json::array()},
              {"plugins", Json::array()}};
  for (const Logical& d : logical) {
    Json one = {{"name", d.name},
                {"type", d.type},
                {"description", d.description},
                {"simulated", d.simulated},
                {"default", d.is_default},
                {"physical", d.physical},
                {"memory_limit_bytes", d.memory_limit_bytes},
                {"why", d.why}};
    if (!d.cores.empty()) {
      one["cores"] = d.cores;
      one["workers"] = d.workers;
    }
    all["logical"].push_back(std::move(one));
  }
  for (const Physical& d : physical) {
    all["physical"].push_back({{"name", d.name},
                               {"type", d.type},
                               {"simulated", d.simulated},
                               {"visible", d.visible},
                               {"why", d.why}});
  }
  for (const Absent& a : absent) {
    all["absent"].push_back({{"type", a.type}, {"why", a.why}});
  }
  for (const PlugIn& p : plugins) {
    all["plugins"].push_back({{"name", p.name},
                              {"path", p.path},
                              {"opened", p.opened},
                              {"devices", p.devices},
                              {"why", p.why}});
  }
  return all;
}

void print_text(const std::vector<Physical>& physical,
                const std::vector<Logical>& logical,
                const std::vector<Absent>& absent,
                const std::vector<PlugIn>& plugins, bool why) {
  for (const Logical& d : logical) {
    fmt::print(
        "{}: {}{}{}{}\n", d.name, d.description,
        d.workers > 0 ? fmt::format(", {}", count(d.workers, "worker")) : "",
        d.memory_limit_bytes > 0 && !d.simulated
            ? fmt::format(", at most {}", bytes_text(d.memory_limit_bytes))
            : "",
        d.is_default ? " (default)" : "");
    if (why) fmt::print("    {}\n", d.why);
  }
  for (const Physical& d : physical) {
    fmt::print("{}: {}{}\n", d.name, d.simulated ? "simulated" : "real",
               d.visible ? "" : ", not visible");
    if (why) fmt::print("    {}\n", d.why);
  }
  if (!why) return;
  for (const PlugIn& p : plugins) {
    if (!p.opened) continue;
    fmt::print("plug-in {}: {}{}\n", p.name, count(p.devices, "device"),
               p.why.empty() ? "" : "; " + p.why);
  }
  for (const Absent& a : absent) fmt::print("no {}: {}\n", a.type, a.why);
}

std::unique_ptr<Survey> survey(const std::string& list) {
  try {
    auto s = std::make_unique<Survey>(list);
    DeviceManager::get();
    return s;
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(std::string("devices: ") + e.what());
  }
}

void run(const DevicesArguments& o) {
  const auto s = survey(o.devices);
  if (o.json) {
    fmt::print(
        "{}\n",
        devices_json(s->physical(), s->logical(), s->absent(), s->plugins())
            .dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print_text(s->physical(), s->logical(), s->absent(), s->plugins(), o.why);
  }
}

}  // namespace

void add_devices(CLI::App& program) {
  auto o = std::make_shared<DevicesArguments>();
  CLI::App* devices = program.add_subcommand(
      "devices", "Lists the devices of a process of this machine");
  devices->add_option("--devices", o->devices,
                      "as a program has them that configures this list, for "
                      "example CPUx2,GPUx2");
  devices->add_flag("--why", o->why, "why each is there, or is not");
  devices->add_flag("--json", o->json, "as JSON (docs/json.md)");
  devices->callback([o] { run(*o); });
}

}  // namespace berth::cli
