// Policies, and what layers do by theirs.

#include "berth/keras/mixed_precision.h"

#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "base/immortal.h"
#include "berth/errors.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"
#include "keras/models/masks.h"
#include "keras/models/policy_scope.h"
#include "keras/models/thread_state.h"

namespace berth::keras {

namespace {

struct PolicyRow {
  const char* name;
  DType compute;
};
constexpr PolicyRow kPolicies[] = {{"float32", float32},
                                   {"mixed_bfloat16", bfloat16},
                                   {"mixed_float16", float16}};

constinit std::atomic<DTypePolicy> g_policy;

bool is_16_bits(DType d) { return d == bfloat16 || d == float16; }

// True for what does not compute: models, whose layers have policies of their
// own, and inputs.
bool only_passes(const LayerState& s) {
  return s.on_host || s.type == "Model" || s.type == "Sequential" ||
         s.type == "InputLayer";
}

}  // namespace

DTypePolicy::DTypePolicy(const std::string& name) {
  std::string names;
  for (const PolicyRow& row : kPolicies) {
    if (name == row.name) return;
    ++row_;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", row.name);
  }
  throw errors::InvalidArgument(
      fmt::format("there is no dtype policy \"{}\"; expected one of {}",
                  name.substr(0, 60), names));
}

DTypePolicy::DTypePolicy(DType dtype) {
  if (dtype == float32) return;
  throw errors::InvalidArgument(fmt::format(
      "a layer's dtype is {}; expected float32, or \"mixed_bfloat16\" or "
      "\"mixed_float16\" to compute in 16 bits: weights are float32",
      name_of(dtype)));
}

const std::string& DTypePolicy::name() const {
  static const auto& names = immortal<std::vector<std::string>>([] {
    std::vector<std::string> all;
    for (const PolicyRow& row : kPolicies) all.emplace_back(row.name);
    return all;
  }());
  return names[row_];
}
DType DTypePolicy::compute_dtype() const { return kPolicies[row_].compute; }

void mixed_precision::set_global_policy(const DTypePolicy& policy) {
  g_policy.store(policy, std::memory_order_relaxed);
}
DTypePolicy mixed_precision::global_policy() {
  return g_policy.load(std::memory_order_relaxed);
}

PolicyScope::PolicyScope(const DTypePolicy& policy)
    : policy_(policy), outer_(keras_thread().policy) {
  keras_thread().policy = this;
}
PolicyScope::~PolicyScope() { keras_thread().policy = outer_; }
DTypePolicy PolicyScope::current() {
  return keras_thread().policy ? keras_thread().policy->policy_
                               : mixed_precision::global_policy();
}

DType weights_dtype(const LayerState& s) {
  return s.casts.weights && !only_passes(s) ? s.policy.compute_dtype()
                                            : float32;
}

Tensors inputs_for(const LayerState& s, const Tensors& x) {
  if (!s.casts.inputs || only_passes(s)) return x;
  const DType to = s.policy.compute_dtype();
  Tensors cast = x;
  for (Tensor& t : cast) {
    const DType from = t.dtype();
    // A float32 layer computes in float64 where it is given that.
    const bool fits =
        to == float32 ? !is_16_bits(from) : !is_floating(from) || from == to;
    if (fits) continue;
    const Tensor mask = Masks::of(t);
    t = math::cast(t, to, s.site);
    if (mask.defined()) Masks::set(t, mask);
  }
  return cast;
}

void cast_outputs(const LayerState& s, Tensors* y) {
  const DType to = s.policy.compute_dtype();
  // Parts have policies of their own, so the last one decides.
  if (to == float32 || !s.casts.outputs || only_passes(s) || !s.parts.empty()) {
    return;
  }
  for (Tensor& t : *y) {
    if (t.defined() && t.dtype() == float32) t = math::cast(t, to, s.site);
  }
}

bool computes_in_float16(const LayerState& s) {
  if (s.policy.compute_dtype() == float16 && !only_passes(s)) return true;
  for (const Layer& part : s.parts) {
    if (computes_in_float16(part.base()->state())) return true;
  }
  return false;
}

const DTypePolicy& LayerBase::dtype_policy() const { return state_->policy; }
void LayerBase::set_dtype_policy(const DTypePolicy& policy) {
  state_->policy = policy;
  for (const Layer& part : state_->parts) {
    part.base()->set_dtype_policy(policy);
  }
}
void LayerBase::set_autocast(bool autocast) {
  state_->casts.inputs = autocast;
  state_->casts.weights = autocast;
  state_->casts.outputs = autocast;
}

Layer Layer::set_dtype_policy(const DTypePolicy& policy) const {
  base_->set_dtype_policy(policy);
  return *this;
}

}  // namespace berth::keras
