#include "eager/lint_moves.h"

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "device/request_text.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/kernel.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

constexpr int64_t kSaving = 4;
// An op that computes more per byte may have been sent away for that.
constexpr double kFlopsPerByte = 16;

int64_t size_of_value(const Tensor& t) {
  const TensorImpl& i = *t.impl();
  return i.block == nullptr ? 0 : static_cast<int64_t>(i.size_bytes());
}

// An op that nobody placed, and that the device of its inputs lacks.
void lint_lacking(const OpDef& op, std::span<const Tensor* const> in,
                  DType dtype, const Device& device) {
  const Device* home = nullptr;
  int64_t bytes = 0;
  for (const Tensor* t : in) {
    const Device* at = t->impl()->block ? t->impl()->block->device : &device;
    if (at == &device || can_run(at->kernels(), op, dtype)) continue;
    home = at;
    bytes += size_of_value(*t);
  }
  if (bytes < static_cast<int64_t>(kLintMovedBytes)) return;
  const std::string place = where_text();
  report_once(
      fmt::format("{}{}\n{}", op.name(), place, home->name().str()),
      {"kernel-missing", debugging::Severity::kLint,
       fmt::format("{}{} runs on {}, for {} has no kernel for it, which "
                   "fetches {} per call; use an op that it has",
                   op.name(), place, device.short_name(), home->short_name(),
                   bytes_text(bytes)),
       t_state.site});
}

}  // namespace

void lint_moves(const OpDef& op, std::span<const Tensor* const> in,
                const InferContext& call, DType dtype, const Device& device) {
  const DeviceScope* scope = t_state.scope;
  if (scope == nullptr) return lint_lacking(op, in, dtype, device);
  if (scope->kind == ScopeKind::kEngine ||
      !scope->name.matches(device.name()) || op.has_variables()) {
    return;
  }
  const Tensor* largest = nullptr;
  for (const Tensor* t : in) {
    if (t->impl()->block == nullptr) continue;
    if (!largest || size_of_value(*t) > size_of_value(*largest)) largest = t;
  }
  if (!largest) return;
  const Device& home = *largest->impl()->block->device;
  if (&home == &device || !can_run(home.kernels(), op, dtype)) return;
  int64_t now = 0, there = 0;
  for (const Tensor* t : in) {
    const Device* at = t->impl()->block ? t->impl()->block->device : &device;
    if (at != &device) now += size_of_value(*t);
    if (at != &home) there += size_of_value(*t);
  }
  for (int i = 0; i < call.num_outputs(); ++i) {
    const OutSpec& out = call.output(i);
    if (out.dtype == string_) return;
    there +=
        out.shape.num_elements() * static_cast<int64_t>(size_of(out.dtype));
  }
  const double saved = static_cast<double>(now - there);
  if (now - there < static_cast<int64_t>(kLintMovedBytes) ||
      now < kSaving * there || op.cost(call).flops > kFlopsPerByte * saved) {
    return;
  }
  const std::string place = where_text();
  report_once(
      fmt::format("{}{}\n{}", op.name(), place, device.str()),
      {"reduce-placement", debugging::Severity::kLint,
       fmt::format("{}{} was asked for on {}, which fetches {} from {}; there "
                   "it would send {}: ask for \"{}\", or leave the scope out",
                   op.name(), place, device.short_name(), bytes_text(now),
                   home.short_name(), bytes_text(there),
                   request_text(home.name())),
       t_state.site});
}

}  // namespace berth
