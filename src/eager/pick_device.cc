#include "eager/pick_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "berth/config.h"
#include "device/device_manager.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/kernel.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

Device* device_of(const TensorImpl& t) {
  return t.kind == TensorKind::kVariable ? t.device : t.block->device;
}

bool can_run_on(const Device& device, const OpDef& op, DType dtype) {
  if (dtype == string_ && device.type() != "CPU") return false;
  // The host reads shapes for every device.
  const Device& runs = op.metadata() ? DeviceManager::get().host() : device;
  return can_run(runs.kernels(), op, dtype);
}

[[noreturn]] void fail(const DeviceCall& call) {
  ChoiceFailure failure = failure_of(call, where_text());
  const DeviceManager& m = DeviceManager::get();
  const Device* asked = t_state.scope ? t_state.scope_device : nullptr;
  const Device& meant = asked ? *asked : m.default_device();
  DTypeSet taken = 0;
  for (int d = 1; d < kNumDTypes; ++d) {
    const auto other = static_cast<DType>(d);
    if (meant.kernels().supports(*call.op, other)) taken |= dtype_bit(other);
  }
  if (failure.code == errors::Code::kUnimplemented && taken) {
    failure.message += "; there it takes " + dtype_list(taken);
  }
  errors::raise(failure.code, failure.message);
}

// The usual cases, decided as choose_device() would.
Device* pick_at_once(const OpDef& op, DType dtype, const DeviceManager& m) {
  if (op.has_variables() || dtype == string_ || op.metadata()) return nullptr;
  Device* device = nullptr;
  if (t_state.scope == nullptr) {
    if (m.devices().size() == 1) device = m.devices()[0];
  } else if (asks_for_device(&t_state.scope->name)) {
    device = t_state.scope_device;
  }
  return device && can_run(device->kernels(), op, dtype) ? device : nullptr;
}

PickedDevice pick_by_rules(const OpDef& op, std::span<const Tensor* const> in,
                           DType dtype, DeviceBits refused,
                           const DeviceManager& m) {
  constexpr size_t kInline = 8;
  std::array<ChoiceInput, kInline> few;
  std::vector<ChoiceInput> many(in.size() > kInline ? in.size() : 0);
  const std::span<ChoiceInput> inputs =
      many.empty() ? std::span(few).first(in.size()) : std::span(many);
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorImpl& t = *in[i]->impl();
    inputs[i] = {t.dtype, m.position_of(*device_of(t)), t.shape.num_elements()};
  }
  struct Context {
    const OpDef& op;
    const std::vector<Device*>& devices;
    DType dtype;
    DeviceBits refused;
  } context{op, m.by_preference(), dtype, refused};
  const DeviceCall call{
      .op = &op,
      .dtype = dtype,
      .inputs = inputs,
      .request = t_state.scope ? &t_state.scope->name : nullptr,
      .devices = m.names_by_preference(),
      .can_run =
          [&context](int i) {
            const auto at = static_cast<size_t>(i);
            return !(context.refused >> at & 1) &&
                   can_run_on(*context.devices[at], context.op, context.dtype);
          },
      .soft = soft_placement_here()};
  const DeviceChoice choice = choose_device(call);
  if (choice.position < 0) fail(call);
  PickedDevice picked;
  picked.device = m.by_preference()[static_cast<size_t>(choice.position)];
  picked.rule = choice.rule;
  if (choice.rule == ChoiceRule::kFallback) {
    picked.reason = reason_of(call, choice);
  }
  return picked;
}

}  // namespace

PickedDevice pick_device(const OpDef& op, std::span<const Tensor* const> in,
                         DType dtype, DeviceBits refused) {
  const DeviceManager& m = DeviceManager::get(op.name(), t_state.site);
  if (refused == 0) {
    if (Device* device = pick_at_once(op, dtype, m)) {
      return {device,
              t_state.scope ? ChoiceRule::kRequest : ChoiceRule::kDefault, ""};
    }
  }
  return pick_by_rules(op, in, dtype, refused, m);
}

void report_pick(const OpDef& op, std::span<const Tensor* const> in,
                 std::span<const OutSpec> out, const PickedDevice& picked) {
  int64_t bytes = 0;
  for (const Tensor* t : in) {
    if (device_of(*t->impl()) == picked.device) continue;
    bytes += static_cast<int64_t>(t->impl()->size_bytes());
  }
  if (t_state.scope_device) {
    for (const OutSpec& s : out) {
      bytes += s.shape.num_elements() * static_cast<int64_t>(size_of(s.dtype));
    }
  }
  report_fallback(op.name(), picked.reason, *picked.device, bytes);
}

void log_placement(const OpDef& op, const Device& device) {
  report({"placement", debugging::Severity::kInfo,
          fmt::format("Executing op {} in device {}{}", op.name(),
                      device.name().short_str(), where_text()),
          t_state.site});
}

void check_policy(const OpDef& op, int i, const Tensor& input,
                  const Device& device) {
  using config::DevicePolicy;
  const DevicePolicy policy = config::device_policy();
  const bool silent =
      policy == DevicePolicy::kSilent || op.name() == "Identity" ||
      (policy == DevicePolicy::kSilentForInt32 && input.dtype() == int32);
  if (silent) return;
  const Device& there = *input.impl()->block->device;
  const std::string what = fmt::format(
      "tensors on conflicting devices: {} runs on {} and its input {} ({}, {}) "
      "is on {}",
      op.name(), device.name().short_str(), i, op.input(i).name,
      input.spec().str(), there.name().short_str());
  if (policy == DevicePolicy::kWarn) {
    report_once(
        fmt::format("{}\n{}\n{}\n{}", op.name(), i, device.slot(),
                    there.slot()),
        {"input-copied", debugging::Severity::kWarning,
         fmt::format(
             "{}{}; each call copies {}", what, where_text(),
             bytes_text(static_cast<int64_t>(input.impl()->size_bytes()))),
         t_state.site});
    return;
  }
  throw errors::InvalidArgument(fmt::format(
      "{}{}; expected it there: copy it with identity() in a scope of that "
      "device, or allow copies with config::set_device_policy(\"silent\")",
      what, where_text()));
}

bool runs_on_host(const OpDef& op, std::span<const OutSpec> out) {
  return op.metadata() &&
         std::all_of(out.begin(), out.end(), [](const auto& s) {
           return s.dtype == int32 || s.dtype == int64;
         });
}

}  // namespace berth
