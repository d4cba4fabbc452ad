#include "op/choose_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "op/op_def.h"
#include "op/select_device.h"

namespace berth {

namespace {

bool is_cpu(const DeviceName& name) { return name.type == "CPU"; }

// The request without type and number; all devices when there is none.
DeviceName task_of(const DeviceName* request) {
  DeviceName task = request ? *request : DeviceName();
  task.type.reset();
  task.id.reset();
  return task;
}

int first_variable(const DeviceCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const ChoiceInput& in = call.inputs[i];
    if (in.dtype == resource && in.device >= 0) return static_cast<int>(i);
  }
  return -1;
}

bool has_strings(const DeviceCall& call) {
  return call.dtype == string_ ||
         std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const auto& in) { return in.dtype == string_; });
}

bool small_integers_on_cpus(const DeviceCall& call) {
  if (call.inputs.empty() || call.op->random()) return false;
  return std::all_of(
      call.inputs.begin(), call.inputs.end(), [&](const ChoiceInput& in) {
        return few_integers(in.dtype, in.elements) && in.device >= 0 &&
               is_cpu(*call.devices[in.device]);
      });
}

// The rules for an op that nobody asked for; false: none of them speaks.
bool choose_unasked(const DeviceCall& call, DeviceChoice* choice) {
  const DeviceName task = task_of(call.request);
  const auto take = [&](int device, ChoiceRule rule, int because) {
    if (device < 0 || !task.matches(*call.devices[device]) ||
        !call.can_run(device)) {
      return false;
    }
    *choice = {device, rule, because, false};
    return true;
  };
  if (call.op->metadata() && !call.inputs.empty() &&
      take(call.inputs[0].device, ChoiceRule::kMetadata, 0)) {
    return true;
  }
  if (has_strings(call)) {
    for (size_t i = 0; i < call.devices.size(); ++i) {
      if (is_cpu(*call.devices[i]) &&
          take(static_cast<int>(i), ChoiceRule::kHostStrings, -1)) {
        return true;
      }
    }
  }
  return small_integers_on_cpus(call) &&
         take(call.inputs[0].device, ChoiceRule::kHostIntegers, 0);
}

// "GPU:0, GPU:1": the devices for which `holds`.
template <class Holds>
std::string list_devices(const DeviceCall& call, Holds&& holds) {
  std::string list;
  for (size_t i = 0; i < call.devices.size(); ++i) {
    if (!holds(static_cast<int>(i))) continue;
    list += (list.empty() ? "" : ", ") + call.devices[i]->short_str();
  }
  return list;
}

std::string matching(const DeviceCall& call, const DeviceName& request) {
  return list_devices(call,
                      [&](int i) { return request.matches(*call.devices[i]); });
}

std::string no_such_device(const DeviceName& request) {
  return fmt::format("no device matches \"{}\"", request.str());
}

std::string no_kernel(const DeviceCall& call, const std::string& on) {
  return fmt::format("no kernel for {} on {}", name_of(call.dtype), on);
}

// "CPU, GPU": types of devices that can run the op.
std::string able_types(const DeviceCall& call) {
  std::vector<std::string> types;
  for (size_t i = 0; i < call.devices.size(); ++i) {
    const std::string& type = *call.devices[i]->type;
    if (call.can_run(static_cast<int>(i)) &&
        std::find(types.begin(), types.end(), type) == types.end()) {
      types.push_back(type);
    }
  }
  std::string list;
  for (const std::string& t : types) list += (list.empty() ? "" : ", ") + t;
  return list.empty() ? "none" : list;
}

}  // namespace

const char* id_of(ChoiceRule rule) {
  constexpr const char* kIds[] = {"none",     "resource",     "request",
                                  "metadata", "host-strings", "host-integers",
                                  "default",  "fallback"};
  return kIds[static_cast<size_t>(rule)];
}

DeviceChoice choose_device(const DeviceCall& call) {
  DeviceChoice choice;
  if (call.op->has_variables()) {
    const int handle = first_variable(call);
    if (handle >= 0) {
      const int device = call.inputs[handle].device;
      if (!call.can_run(device)) return choice;
      const bool ignored =
          call.request && !call.request->matches(*call.devices[device]);
      return {device, ChoiceRule::kResource, handle, ignored};
    }
  }
  const DeviceName wanted = call.request ? *call.request : DeviceName();
  if (!asks_for_device(call.request)) {
    if (choose_unasked(call, &choice)) return choice;
    choice.position =
        select_device(wanted, call.devices, false, call.can_run).position;
    if (choice.position >= 0) choice.rule = ChoiceRule::kDefault;
    return choice;
  }
  const SelectedDevice selected =
      select_device(wanted, call.devices, call.soft, call.can_run);
  choice.position = selected.position;
  if (selected.position >= 0) {
    choice.rule =
        selected.relaxed ? ChoiceRule::kFallback : ChoiceRule::kRequest;
  }
  return choice;
}

std::string reason_of(const DeviceCall& call, const DeviceChoice& choice) {
  switch (choice.rule) {
    case ChoiceRule::kNone:
      return failure_of(call).message;
    case ChoiceRule::kResource:
      return fmt::format("the variable of input {} lives there",
                         choice.because);
    case ChoiceRule::kRequest:
      return fmt::format("asked for by device(\"{}\")", call.request->str());
    case ChoiceRule::kMetadata:
      return "it reads only the shape of input 0, which is there";
    case ChoiceRule::kHostStrings:
      return "text lives on the host";
    case ChoiceRule::kHostIntegers:
      return "its inputs are a few integers, which are there";
    case ChoiceRule::kDefault:
      return "the first device that has a kernel";
    case ChoiceRule::kFallback:
      break;
  }
  const std::string on = matching(call, *call.request);
  return on.empty() ? no_such_device(*call.request) : no_kernel(call, on);
}

ChoiceFailure failure_of(const DeviceCall& call, const std::string& place) {
  const int handle = call.op->has_variables() ? first_variable(call) : -1;
  const DeviceName wanted = call.request ? *call.request : DeviceName();
  const std::string on =
      handle < 0 ? matching(call, wanted)
                 : call.devices[call.inputs[handle].device]->short_str();
  const auto all = [](int) { return true; };
  if (on.empty()) {
    return {
        errors::Code::kInvalidArgument,
        fmt::format(
            "{}: could not satisfy device specification \"{}\"{}: no "
            "device matches it{}; expected one of {}; types with a kernel "
            "for {}: {}",
            call.op->name(), wanted.str(), place,
            call.soft ? ", also without its type and number"
                      : " and soft placement is off",
            list_devices(call, all), name_of(call.dtype), able_types(call))};
  }
  const std::string have = list_devices(call, call.can_run);
  const std::string rest =
      have.empty() ? "no device has one" : "these devices have one: " + have;
  if (handle >= 0 || !asks_for_device(call.request)) {
    return {errors::Code::kUnimplemented,
            fmt::format("{}: {}{}{}; {}", call.op->name(), no_kernel(call, on),
                        handle < 0 ? "" : ", where its variable lives", place,
                        rest)};
  }
  return {
      errors::Code::kUnimplemented,
      fmt::format("{}: {} (asked for by device(\"{}\")){}; {}", call.op->name(),
                  no_kernel(call, on), wanted.str(), place, rest)};
}

}  // namespace berth
