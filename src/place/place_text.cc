#include "place/place_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/immortal.h"
#include "berth/errors.h"
#include "device/composite.h"
#include "device/device_name.h"
#include "device/runtime_config.h"
#include "op/kernel.h"

namespace berth {

namespace {

std::string upper(std::string s) {
  for (char& c : s) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return s;
}

const DeviceName& this_process() {
  static const auto& name =
      immortal<DeviceName>(DeviceName{"localhost", 0, 0, {}, {}});
  return name;
}

// The task that the text calls local, whichever process reads it.
DeviceName local_task(const GraphText& text) {
  if (text.local_task.empty()) return this_process();
  return DeviceName::parse(text.local_task).merged_over(this_process());
}

std::vector<std::string> type_order(const GraphText& text) {
  std::vector<std::string> order;
  for (const std::string& type : text.type_order) order.push_back(upper(type));
  return order;
}

DeviceName full_name(const std::string& name, const DeviceName& here) {
  DeviceName d = DeviceName::parse(name).merged_over(here);
  if (!d.id) d.id = 0;
  return d;
}

struct Preference {
  DeviceName here;
  std::vector<std::string> order;

  auto of(const DeviceName& d) const {
    const auto at = static_cast<size_t>(
        std::find(order.begin(), order.end(), *d.type) - order.begin());
    const bool said = at < order.size();
    const int type = said                        ? 0
                     : *d.type == "GPU"          ? 1
                     : *d.type == "CPU"          ? 2
                     : *d.type == kCompositeType ? 4
                                                 : 3;
    const bool elsewhere = !here.matches(d);
    return std::make_tuple(said ? at : order.size(), type,
                           type == 3 ? *d.type : "", elsewhere, *d.job,
                           *d.replica, *d.task, *d.id);
  }
};

std::vector<std::string> in_order(std::vector<DeviceName> devices,
                                  const Preference& preference) {
  if (devices.size() > kMaxPlaceDevices) {
    throw errors::InvalidArgument(
        fmt::format("{} devices to place on; expected at most {}",
                    devices.size(), kMaxPlaceDevices));
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [&](const DeviceName& a, const DeviceName& b) {
                     return preference.of(a) < preference.of(b);
                   });
  std::vector<std::string> names;
  for (const DeviceName& d : devices) {
    names.push_back(d.str());
    if (names.size() > 1 && names[names.size() - 2] == names.back()) {
      throw errors::InvalidArgument(
          fmt::format("device \"{}\" is there twice; expected distinct devices",
                      names.back()));
    }
  }
  return names;
}

bool names_devices(const std::string& kernel_on) {
  return kernel_on.find('/') != std::string::npos;
}

// The kernel lines for one device, or for devices of a type that none names.
class DeclaredKernels {
 public:
  DeclaredKernels(const GraphText& text, const DeviceName& device) {
    std::unordered_map<std::string_view, const OpDef*> ops;
    for (const auto& op : text.graph.declared_ops) {
      ops.emplace(op->name(), op.get());
    }
    for (const KernelDecl& kernel : text.kernels) {
      const auto it = ops.find(kernel.op);
      const OpDef* op =
          it != ops.end() ? it->second : OpRegistry::get().find(kernel.op);
      // An op with kernels on other devices has none here.
      std::vector<Kernel>& list = kernels_[op];
      for (const std::string& t : kernel.device_types) {
        if (names_devices(t) ? !DeviceName::parse(t).matches(device)
                             : upper(t) != *device.type) {
          continue;
        }
        list.push_back({kernel.dtypes, kernel.priority});
      }
    }
  }

  bool declares(const OpDef& op) const { return kernels_.contains(&op); }
  bool runs(const OpDef& op, DType dtype) const {
    for (const Kernel& k : kernels_.at(&op)) {
      if (k.takes(dtype)) return true;
    }
    return false;
  }
  // The priority of the best kernel.
  int priority(const OpDef& op, DType dtype) const {
    const auto it = kernels_.find(&op);
    if (it == kernels_.end()) return 0;
    int best = 0;
    bool any = false;
    for (const Kernel& k : it->second) {
      if (!k.takes(dtype)) continue;
      best = any ? std::max(best, k.priority) : k.priority;
      any = true;
    }
    return best;
  }

 private:
  struct Kernel {
    DTypeSet dtypes;
    int priority;
    // Also matches ops without a dtype, which take only handles.
    bool takes(DType dtype) const {
      return dtypes == kAnyType || (dtypes & dtype_bit(dtype)) != 0;
    }
  };
  std::unordered_map<const OpDef*, std::vector<Kernel>> kernels_;
};

}  // namespace

std::vector<std::string> devices_of_list(std::string_view list,
                                         const GraphText* text) {
  std::vector<DeviceName> devices;
  std::unordered_map<std::string, int> next;
  for (const DeviceListEntry& e : parse_device_list(list, kMaxPlaceDevices)) {
    for (int i = 0; i < e.count; ++i) {
      DeviceName d = this_process();
      d.type = e.type;
      d.id = next[e.type]++;
      devices.push_back(std::move(d));
    }
    if (devices.size() > kMaxPlaceDevices) break;
  }
  if (devices.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "device list '{}' has no device; expected for example 'CPUx1,GPUx2'",
        list));
  }
  Preference preference{this_process(), {}};
  if (text) preference = {local_task(*text), type_order(*text)};
  return in_order(std::move(devices), preference);
}

std::vector<std::string> devices_of_text(const GraphText& text) {
  std::vector<DeviceName> devices;
  const DeviceName here = local_task(text);
  for (const DeviceDecl& decl : text.devices) {
    devices.push_back(full_name(decl.name, here));
  }
  return in_order(std::move(devices), {here, type_order(text)});
}

PlaceOptions place_options(const GraphText& text,
                           const std::vector<std::string>& devices,
                           const KernelsOfType& kernels) {
  PlaceOptions options;
  if (!text.local_task.empty()) options.local = local_task(text).str();
  options.type_order = type_order(text);
  bool by_task = false;
  for (const KernelDecl& k : text.kernels) {
    by_task |= std::any_of(k.device_types.begin(), k.device_types.end(),
                           names_devices);
  }
  std::unordered_map<std::string, std::shared_ptr<const DeclaredKernels>> known;
  for (const std::string& name : devices) {
    const DeviceName full = full_name(name, local_task(text));
    const std::string& type = *full.type;
    auto& declared = known[by_task ? full.str() : type];
    if (!declared) {
      declared = std::make_shared<const DeclaredKernels>(text, full);
    }
    const KernelTable* table = kernels ? kernels(type) : nullptr;
    const bool all = !kernels && (type == "CPU" || type == "GPU");
    PlaceDevice d;
    d.name = name;
    d.runs = [declared, table, all](const OpDef& op, DType dtype) {
      if (declared->declares(op)) return declared->runs(op, dtype);
      if (op.id() == kDetachedOp) return false;
      return all || (table && can_run(*table, op, dtype));
    };
    d.declares = [declared](const OpDef& op) { return declared->declares(op); };
    d.priority = [declared](const OpDef& op, DType dtype) {
      return declared->priority(op, dtype);
    };
    options.devices.push_back(std::move(d));
  }
  return options;
}

namespace {

// The machine of a text, built line by line.
class MachineReader {
 public:
  MachineReader(const GraphText& text, const std::vector<std::string>& devices)
      : text_(text),
        here_(local_task(text)),
        machine_(assumed_machine(devices)) {
    for (DeviceClass& c : machine_.classes) {
      const ClassDecl* decl = find_class(c.type);
      if (decl && upper(decl->type) == c.type) apply(*decl, &c);
    }
  }

  Machine run() {
    for (const DeviceDecl& decl : text_.devices) read_device(decl);
    for (const LinkDecl& decl : text_.links) read_link(decl);
    return std::move(machine_);
  }

 private:
  const ClassDecl* find_class(const std::string& name) const {
    for (const ClassDecl& c : text_.classes) {
      if (c.name == name) return &c;
    }
    return nullptr;
  }

  static void apply(const ClassDecl& decl, DeviceClass* c) {
    c->name = decl.name;
    c->flops_per_us = decl.flops_per_us.value_or(c->flops_per_us);
    c->bytes_per_us = decl.bytes_per_us.value_or(c->bytes_per_us);
    c->launch_us = decl.launch_us.value_or(c->launch_us);
    c->origin = CostOrigin::kDeclared;
  }

  void read_device(const DeviceDecl& decl) {
    const int32_t d = machine_.find(full_name(decl.name, here_).str());
    if (d < 0) return;  // another list of devices is in use
    DeviceCost& device = machine_.devices[static_cast<size_t>(d)];
    device.memory_limit = decl.memory_limit.value_or(0);
    if (decl.copies == "overlap") device.copies = CopyRule::kOverlap;
    if (decl.copies == "receiving") device.copies = CopyRule::kReceiving;
    if (decl.copies == "both") device.copies = CopyRule::kBoth;
    if (decl.copies == "free") device.copies = CopyRule::kFree;
    if (decl.device_class.empty()) return;
    device.device_class = class_number(decl.device_class, machine_.class_of(d));
  }

  // A class starts with the properties of its devices' type.
  int32_t class_number(const std::string& name, DeviceClass like) {
    for (size_t i = 0; i < machine_.classes.size(); ++i) {
      if (machine_.classes[i].name == name) return static_cast<int32_t>(i);
    }
    like.name = name;
    if (const ClassDecl* decl = find_class(name)) apply(*decl, &like);
    machine_.classes.push_back(std::move(like));
    return static_cast<int32_t>(machine_.classes.size()) - 1;
  }

  void read_link(const LinkDecl& decl) {
    const int32_t from = machine_.find(full_name(decl.from, here_).str());
    const int32_t to = machine_.find(full_name(decl.to, here_).str());
    if (from < 0 || to < 0) return;
    machine_.link_of(from, to) = {decl.latency_us, decl.bytes_per_us,
                                  decl.shared, CostOrigin::kDeclared};
  }

  const GraphText& text_;
  const DeviceName here_;
  Machine machine_;
};

}  // namespace

Machine machine_of(const GraphText& text,
                   const std::vector<std::string>& devices) {
  return MachineReader(text, devices).run();
}

CostTable costs_of_text(const GraphText& text, const Machine& machine,
                        const PlaceOptions& options) {
  EstimateOptions estimate;
  estimate.declared = &text.costs;
  estimate.runs = [&](const OpDef& op, DType dtype, const DeviceClass& on) {
    for (size_t d = 0; d < machine.devices.size(); ++d) {
      const int32_t c = machine.devices[d].device_class;
      if (machine.classes[static_cast<size_t>(c)].name != on.name) continue;
      // The placer needs to know only about computations.
      return op.kind() != OpKind::kCompute ||
             options.devices[d].runs(op, dtype);
    }
    return true;
  };
  return estimate_costs(text.graph, machine, estimate);
}

}  // namespace berth
