#include "autodiff/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/diagnostics.h"
#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "op/control_flow.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "tensor/mirrors.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

GradientTape::Recorder::Recorder(TapeOptions options, Site site)
    : options_(options),
      site_(site),
      thread_(this_thread()),
      scope_serial_(next_scope_serial()) {
  push();
}

GradientTape::Recorder::~Recorder() {
  if (thread_ == this_thread()) pop();
}

const GradientTape::Recorder::ThreadLife&
GradientTape::Recorder::this_thread() {
  struct Life {
    ~Life() { *lives = false; }
    ThreadLife lives = std::make_shared<std::atomic<bool>>(true);
  };
  return of_this_thread<Life>().lives;
}

void GradientTape::Recorder::check_thread(const char* call) const {
  if (thread_ == this_thread()) return;
  throw errors::FailedPrecondition(fmt::format(
      "GradientTape: {}{} on another thread than the one that made the "
      "tape{}; expected that one: a thread owns its tapes, which record what "
      "runs on it alone; hand over tensors, not tapes",
      call, where_text(), where_text(nullptr, site_)));
}

void GradientTape::Recorder::end(std::unique_ptr<Recorder> recorder) {
  Recorder& r = *recorder;
  if (!r.pushed() || r.thread_ == this_thread() || !*r.thread_) return;
  static std::mutex mutex;
  static auto& abandoned = immortal<std::vector<std::unique_ptr<Recorder>>>();
  {
    std::lock_guard lock(mutex);
    abandoned.push_back(std::move(recorder));
  }
  r.abandoned_ = true;
  report_once(where_text(nullptr, r.site_),
              {"tape-thread", debugging::Severity::kWarning,
               "a GradientTape that still recorded was destroyed on another "
               "thread than the one that made it; what it held is freed when "
               "that thread runs its next op: call stop() or destroy the tape "
               "there",
               r.site_});
}

// Lets go of what is recorded, on the thread that recorded it.
void GradientTape::Recorder::forget() {
  if (slots_.ended()) return;
  slots_.end();
  nodes_ = {};
  tensors_ = {};
  values_ = {};
  watched_ = {};
}

Tensor GradientTape::Recorder::with_home(const Tensor& t) {
  if (!t.defined() || t.impl()->kind != TensorKind::kVariable) return t;
  Tensor home = home_of(t);
  return home.defined() ? home : t;
}

void GradientTape::Recorder::watch(const Tensor& t) {
  const DType d = t.dtype() == resource ? variable_state(t).dtype : t.dtype();
  if (!is_inexact(d)) {
    throw errors::InvalidArgument(fmt::format(
        "GradientTape: watch of a {}; expected a floating or complex dtype",
        name_of(d)));
  }
  if (value_of(t) != kUnwatched) return;
  watched_.push_back(with_home(t));
  slots_.set(watched_.back().impl(), num_values_++);
}

void GradientTape::Recorder::apply(const OpDef& op,
                                   std::span<const Tensor* const> in,
                                   const Attrs* attrs, std::span<Tensor> out) {
  if (abandoned_.load(std::memory_order_relaxed)) [[unlikely]] {
    forget();
    return next(op, in, attrs, out);
  }
  bool watched = false;
  const bool reads = op.kind() == OpKind::kReadVariable ||
                     op.kind() == OpKind::kCall ||
                     op.kind() == OpKind::kControl;
  if (reads && options_.watch_accessed_variables) {
    for (const Tensor* t : in) {
      const VariableState* v =
          t->defined() && t->impl()->kind == TensorKind::kVariable
              ? t->impl()->variable
              : nullptr;
      if (v && v->trainable && is_inexact(v->dtype)) watch(*t);
    }
  }
  for (const Tensor* t : in) watched |= value_of(*t) != kUnwatched;
  if (watched && !op.gradient() && op.decompose()) {
    // No rule of its own: its parts are recorded instead, through this tape.
    std::vector<Tensor> args;
    for (const Tensor* t : in) args.push_back(*t);
    Tensors results = op.decompose()(args, op, attrs);
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(results.at(i));
    return;
  }
  if (watched && op.kind() == OpKind::kControl) {
    return apply_control(op, in, attrs, out);
  }
  next(op, in, attrs, out);
  if (watched && op.gradient()) record(op, in, attrs, out);
}

// Eagerly what runs is recorded, through this tape. In a trace the op stays
// one node, which returns all that a gradient may need.
void GradientTape::Recorder::apply_control(const OpDef& op,
                                           std::span<const Tensor* const> in,
                                           const Attrs* attrs,
                                           std::span<Tensor> out) {
  const bool traced = std::any_of(
      in.begin(), in.end(), [](const Tensor* t) { return t->is_symbolic(); });
  if (!traced) return call_control(op, in, attrs, out);
  const AttrsRef saving = saving_attrs(op, attrs);
  const Attrs* with = saving.get() ? saving.get() : attrs;
  Tensors all(static_cast<size_t>(op.num_outputs(with)));
  next(op, in, with, all);
  record(op, in, with, all);
  std::move(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(out.size()),
            out.begin());
}

void GradientTape::Recorder::record(const OpDef& op,
                                    std::span<const Tensor* const> in,
                                    const Attrs* attrs,
                                    std::span<const Tensor> out) {
  bool floating = false;
  for (const Tensor& t : out) floating |= is_inexact(t.dtype());
  if (!floating) return;
  nodes_.push_back({&op, AttrsRef::share(attrs), t_state.site, t_state.layer,
                    static_cast<uint32_t>(tensors_.size()),
                    static_cast<uint32_t>(values_.size()),
                    static_cast<uint16_t>(in.size()),
                    static_cast<uint16_t>(out.size())});
  for (const Tensor* t : in) {
    tensors_.push_back(*t);
    values_.push_back(value_of(*t));
  }
  for (const Tensor& t : out) {
    tensors_.push_back(t);
    values_.push_back(is_inexact(t.dtype()) ? num_values_ : kUnwatched);
    if (is_inexact(t.dtype())) slots_.set(t.impl(), num_values_++);
  }
}

// Decides where gradient ops run. Pinned (an explicit device, or a scope opened
// after the tape): there. Else where the forward op ran: eagerly its device; in
// a trace the new nodes are colocated with the forward node.
class GradientTape::Recorder::Placement {
 public:
  Placement(const Tensor& forward, uint64_t tape_scope_serial)
      : follows_(t_state.follows) {
    const bool pinned =
        t_state.scope && t_state.scope->serial >= tape_scope_serial;
    // Pinned nodes know whose gradient they are too; their request wins.
    if (forward.is_symbolic()) t_state.follows = forward.impl()->node;
    if (pinned) return;
    if (forward.is_symbolic()) {
      push_scope(&open_.emplace(), DeviceName{}, {});
      // Not merged with outer scopes: the forward op decides.
      open_->name = {};
    } else if (forward.impl()->device) {
      on_.emplace(forward.impl()->device);
    }
  }
  ~Placement() {
    t_state.follows = follows_;
    if (open_) pop_scope(&*open_);
  }

 private:
  const int32_t follows_;
  std::optional<DeviceScope> open_;
  std::optional<OnDevice> on_;
};

std::vector<bool> GradientTape::Recorder::reach(
    const std::vector<int32_t>& sources) const {
  std::vector<bool> reached(static_cast<size_t>(num_values_), false);
  for (int32_t id : sources) {
    if (id != kUnwatched) reached[id] = true;
  }
  for (const Node& n : nodes_) {
    bool any = false;
    for (int i = 0; i < n.num_in; ++i) {
      const int32_t id = values_[n.first_value + i];
      any |= id != kUnwatched && reached[id];
    }
    if (!any) continue;
    for (int i = n.num_in; i < n.num_in + n.num_out; ++i) {
      const int32_t id = values_[n.first_value + i];
      if (id != kUnwatched) reached[id] = true;
    }
  }
  return reached;
}

// Contributions are summed where the forward value lives.
void GradientTape::Recorder::accumulate(Tensor* slot, Tensor grad,
                                        const Tensor& value) const {
  if (!slot->defined()) {
    *slot = std::move(grad);
    return;
  }
  static const OpDef& add = op_named("AddV2");
  const Placement placement(value, scope_serial_);
  *slot = call1(add, *slot, grad);
}

void GradientTape::Recorder::back(const Node& node,
                                  const std::vector<bool>& reached,
                                  const std::vector<bool>& is_source,
                                  std::vector<Tensor>* grads) const {
  const int32_t* recorded = &values_[node.first_value];
  std::vector<Tensor> dys(node.num_out);
  bool any = false;
  for (int i = 0; i < node.num_out; ++i) {
    const int32_t id = recorded[node.num_in + i];
    if (id == kUnwatched) continue;
    dys[i] = (*grads)[id];
    if (!is_source[id]) (*grads)[id] = Tensor();
    any |= dys[i].defined();
  }
  if (!any) return;
  // Copies: a persistent tape records the gradient ops too, and grows.
  const std::vector<int32_t> ids(recorded, recorded + node.num_in);
  const auto first = tensors_.begin() + node.first_tensor;
  const Tensors in(first, first + node.num_in);
  const Tensors out(first + node.num_in, first + node.num_in + node.num_out);
  std::vector<bool> needed(node.num_in);
  bool wanted = false;
  for (int i = 0; i < node.num_in; ++i) {
    needed[i] = ids[i] != kUnwatched && reached[ids[i]];
    wanted = wanted || needed[i];
  }
  if (!wanted) return;
  Tensors dxs;
  {
    const Placement placement(out[0], scope_serial_);
    t_state.site = node.site;
    const char* layer = std::exchange(t_state.layer, node.layer);
    dxs = node.op->gradient()(
        GradCall(*node.op, node.attrs.get(), in, out, dys, needed));
    t_state.layer = layer;
  }
  for (int i = 0; i < node.num_in && i < static_cast<int>(dxs.size()); ++i) {
    if (needed[i] && dxs[i].defined()) {
      accumulate(&(*grads)[ids[i]], std::move(dxs[i]), with_home(in[i]));
    }
  }
}

// True of a mirror when its home, or an earlier mirror of that, is among the
// sources as well: the gradient goes there, whole.
bool GradientTape::Recorder::is_counted_elsewhere(
    const std::vector<Source>& sources, size_t at) {
  const Tensor& t = sources[at].tensor();
  const Tensor home = with_home(t);
  if (home.impl() == t.impl()) return false;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Tensor& other = sources[i].tensor();
    if (other.impl() == home.impl()) return true;
    if (i < at && with_home(other).impl() == home.impl()) return true;
  }
  return false;
}

Tensors GradientTape::Recorder::gradient(const Tensors& targets,
                                         const std::vector<Source>& sources,
                                         const GradientOptions& options) {
  if (used_ && !options_.persistent) {
    throw errors::FailedPrecondition(fmt::format(
        "GradientTape: a second gradient(){}; expected one, or a tape made "
        "with {{.persistent = true}}",
        where_text()));
  }
  used_ = true;
  if (!options_.persistent) pop();
  std::vector<int32_t> ids;
  for (const Source& s : sources) ids.push_back(value_of(s.tensor()));
  const std::vector<bool> reached = reach(ids);
  // Values that the gradient computation itself records come after these.
  const size_t num_nodes = nodes_.size();
  std::vector<Tensor> grads(static_cast<size_t>(num_values_));

  std::optional<DeviceScope> pin;
  if (!options.device.empty()) {
    push_scope(&pin.emplace(), DeviceName::parse(options.device), t_state.site);
  }
  struct Close {
    std::optional<DeviceScope>& scope;
    ~Close() {
      if (scope) pop_scope(&*scope);
    }
  } close{pin};

  static const OpDef& ones = op_named("OnesLike");
  for (size_t i = 0; i < targets.size(); ++i) {
    const Tensor& target = targets[i];
    if (!is_inexact(target.dtype())) {
      throw errors::InvalidArgument(
          fmt::format("GradientTape: the target is {}{}; expected a floating "
                      "or complex dtype",
                      name_of(target.dtype()), where_text()));
    }
    const int32_t id = value_of(target);
    if (id == kUnwatched || !reached[id]) continue;
    lint_local_mean(target);
    Tensor seed = i < options.output_grads.size() ? options.output_grads[i]
                                                  : options.output_grad;
    if (!seed.defined()) {
      const Placement placement(target, scope_serial_);
      seed = call1(ones, target);
    } else if (!seed.shape().compatible_with(target.shape())) {
      throw errors::InvalidArgument(fmt::format(
          "GradientTape: output_grad has shape {}, the target {}{}; expected "
          "equal shapes",
          seed.shape().str(), target.shape().str(), where_text()));
    }
    accumulate(&grads[id], std::move(seed), target);
  }

  std::vector<bool> is_source(grads.size(), false);
  for (int32_t id : ids) {
    if (id != kUnwatched) is_source[id] = true;
  }
  for (size_t i = num_nodes; i-- > 0;) {
    const Node node = nodes_[i];
    back(node, reached, is_source, &grads);
  }
  static const OpDef& zeros = op_named("ZerosLike");
  Tensors results(sources.size());
  for (size_t s = 0; s < ids.size(); ++s) {
    if (is_counted_elsewhere(sources, s)) continue;
    if (ids[s] != kUnwatched) results[s] = grads[ids[s]];
    if (!results[s].defined() &&
        options.unconnected_gradients == UnconnectedGradients::kZero) {
      const Tensor& t = sources[s].tensor();
      results[s] = call1(zeros, t.dtype() == resource ? read_variable(t) : t);
    }
  }
  if (!options_.persistent) {
    nodes_.clear();
    tensors_.clear();
    values_.clear();
    watched_.clear();
  }
  return results;
}

}  // namespace berth
