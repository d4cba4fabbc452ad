#include "op/device_scope.h"

#include <fmt/format.h>

#include <atomic>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "berth/config.h"
#include "berth/device.h"
#include "device/device_manager.h"
#include "op/dispatcher.h"
#include "op/select_device.h"

namespace berth {

namespace {

std::atomic<uint64_t> scope_serial{0};

void set_scope(const DeviceScope* scope) {
  t_state.scope = scope;
  t_state.scope_device = scope ? scope->device : nullptr;
}

}  // namespace

void push_scope(DeviceScope* scope, DeviceName name, Site site, bool forget) {
  const DeviceManager& devices = DeviceManager::get("device()", site);
  const DeviceScope* outer = t_state.scope;
  scope->name =
      outer && !forget ? name.merged_over(outer->name) : std::move(name);
  scope->device = devices.find(scope->name);
  scope->outer = outer;
  scope->site = site;
  scope->serial = ++scope_serial;
  set_scope(scope);
}

void pop_scope(DeviceScope* scope) {
  if (t_state.scope == scope) {
    set_scope(scope->outer);
    return;
  }
  for (auto* s = const_cast<DeviceScope*>(t_state.scope); s;
       s = const_cast<DeviceScope*>(s->outer)) {
    if (s->outer == scope) {
      s->outer = scope->outer;
      return;
    }
  }
}

bool soft_placement_here() {
  return config::get_soft_device_placement() ||
         (t_state.scope && t_state.scope->kind == ScopeKind::kEngine);
}

Device* scope_device(const std::string& what) {
  const DeviceScope* scope = t_state.scope;
  if (scope == nullptr || t_state.scope_device) return t_state.scope_device;
  const DeviceManager& devices = DeviceManager::get();
  const SelectedDevice selected =
      select_device(scope->name, devices.names_by_preference(),
                    soft_placement_here(), [](int) { return true; });
  const std::string none =
      fmt::format("no device matches \"{}\"", scope->name.str());
  if (selected.position < 0) {
    throw errors::InvalidArgument(
        fmt::format("{}: {}{}; expected one of {}{}", what, none, where_text(),
                    devices.list(),
                    soft_placement_here()
                        ? ""
                        : ", or config::set_soft_device_placement(true)"));
  }
  Device* device = devices.by_preference()[selected.position];
  report_fallback(what, none, *device, 0);
  return device;
}

void report_fallback(const std::string& what, const std::string& reason,
                     const Device& device, int64_t bytes) {
  constexpr const char* kId = "fallback";
  if (config::soft_device_placement() == config::SoftPlacement::kSilent) {
    return count_diagnostic(kId);
  }
  const DeviceScope& scope = *t_state.scope;
  // A device that is not there is one finding, whatever asks for it.
  const bool missing = reason.starts_with("no device");
  if (!count_once(kId, fmt::format("{}\n{}\n{}", missing ? "" : what, reason,
                                   missing ? -1 : device.slot()))) {
    return;
  }
  const std::string wanted =
      scope.kind == ScopeKind::kEngine
          ? fmt::format("on {}, where what it is part of runs",
                        scope.name.short_str())
          : fmt::format("where device(\"{}\") asks", scope.name.str());
  // Ops run; a variable lives.
  const char* does = what.starts_with("Variable ") ? "lives" : "runs";
  const std::string cost =
      bytes > 0
          ? fmt::format("; each call moves {} because of it", bytes_text(bytes))
          : "";
  deliver(
      {kId, debugging::Severity::kWarning,
       fmt::format("{} {} on {}, not {}{}: {}{}; ask for {}, or allow this "
                   "silently{}",
                   what, does, device.short_name(), wanted, where_text(),
                   reason, cost,
                   missing ? "one of " + DeviceManager::get().list()
                           : "a device that has one",
                   missing ? "; what else asks for it is only counted" : ""),
       t_state.site});
}

uint64_t next_scope_serial() { return scope_serial.load() + 1; }

NoDeviceScope::NoDeviceScope()
    : scope_(std::exchange(t_state.scope, nullptr)),
      device_(std::exchange(t_state.scope_device, nullptr)) {}

NoDeviceScope::~NoDeviceScope() {
  t_state.scope = scope_;
  t_state.scope_device = device_;
}

OnDevice::OnDevice(Device* device, ScopeKind kind) {
  if (device == nullptr) return;
  scope_.name = device->name();
  scope_.device = device;
  scope_.kind = kind;
  scope_.outer = t_state.scope;
  scope_.serial = ++scope_serial;
  set_scope(&scope_);
  open_ = true;
}

OnDevice::~OnDevice() {
  if (open_) pop_scope(&scope_);
}

DeviceGuard::DeviceGuard(std::string_view name, Site site)
    : scope_(std::make_unique<DeviceScope>()) {
  try {
    push_scope(scope_.get(), DeviceName::parse(name), site);
  } catch (const errors::InvalidArgument& e) {
    raise_with_place(e, nullptr, site);
  }
}

DeviceGuard::DeviceGuard(NoDevice, Site site)
    : scope_(std::make_unique<DeviceScope>()) {
  push_scope(scope_.get(), {}, site, true);
}

DeviceGuard::~DeviceGuard() { pop_scope(scope_.get()); }

}  // namespace berth
