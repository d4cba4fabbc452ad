#include "op/dispatcher.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "berth/device.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "op/device_scope.h"

namespace berth {

constinit thread_local ThreadState t_state
    __attribute__((tls_model("initial-exec"))) = {};

void Dispatcher::push() {
  below_ = t_state.top;
  t_state.top = this;
  pushed_ = true;
}

void Dispatcher::pop() {
  if (!pushed_) return;
  pushed_ = false;
  if (t_state.top == this) {
    t_state.top = below_;
    return;
  }
  for (Dispatcher* d = t_state.top; d; d = d->below_) {
    if (d->below_ == this) {
      d->below_ = below_;
      return;
    }
  }
}

void Dispatcher::next(const OpDef& op, std::span<const Tensor* const> in,
                      const Attrs* attrs, std::span<Tensor> out) {
  const DispatchGuard guard(below_);
  berth::apply(op, in, attrs, out);
}

namespace {
std::atomic<uint64_t> scope_serial{0};

void set_scope(const DeviceScope* scope) {
  t_state.scope = scope;
  t_state.scope_device = scope ? scope->device : nullptr;
}
}  // namespace

void push_scope(DeviceScope* scope, DeviceName name, Site site) {
  const DeviceScope* outer = t_state.scope;
  scope->name = outer ? name.merged_over(outer->name) : std::move(name);
  scope->device = scope->name.empty() ? &DeviceManager::get().default_device()
                                      : DeviceManager::get().find(scope->name);
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

Device* scope_device(const std::string& what) {
  const DeviceScope* scope = t_state.scope;
  if (scope && !t_state.scope_device) {
    throw errors::InvalidArgument(fmt::format(
        "{}: no device matches \"{}\"{}; expected one of {}", what,
        scope->name.str(), where_text(), DeviceManager::get().list()));
  }
  return scope ? t_state.scope_device : nullptr;
}

uint64_t next_scope_serial() { return scope_serial.load() + 1; }

OnDevice::OnDevice(Device* device) {
  if (device == nullptr) return;
  scope_.name = device->name();
  scope_.device = device;
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
  push_scope(scope_.get(), DeviceName::parse(name), site);
}

DeviceGuard::~DeviceGuard() { pop_scope(scope_.get()); }

void raise_with_place(const errors::Error& e, const char* layer, Site site) {
  const std::string_view message = e.what();
  const std::string place = where_text(layer, site);
  if (message.find(place) != message.npos) throw;
  errors::raise(e.code(), std::string(message) + place);
}

std::string where_text() { return where_text(t_state.layer, t_state.site); }

}  // namespace berth
