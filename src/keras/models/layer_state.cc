// Scopes of layers that run; losses and metrics that they add.

#include "keras/models/layer_state.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <set>

#include "base/bytes_text.h"
#include "base/diagnostics.h"
#include "base/immortal.h"
#include "base/intern.h"
#include "base/where.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "berth/ops/math.h"
#include "keras/models/thread_state.h"
#include "keras/models/weight_paths.h"

namespace berth::keras {

namespace {

std::mutex g_names_mutex;
std::map<std::string, int>& name_counts() {
  static auto& counts = immortal<std::map<std::string, int>>();
  return counts;
}

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)); }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)); }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

}  // namespace

std::string snake_case(const std::string& type) {
  std::string s;
  for (size_t i = 0; i < type.size(); ++i) {
    const char c = type[i];
    const bool word_begins = i > 0 && is_upper(c) && type[i - 1] != '_' &&
                             (is_lower(type[i - 1]) ||
                              (i + 1 < type.size() && (is_lower(type[i + 1]) ||
                                                       is_digit(type[i + 1]))));
    if (word_begins) s += '_';
    s += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return s;
}

std::string next_layer_name(const std::string& type) {
  const std::string base = snake_case(type);
  std::lock_guard lock(g_names_mutex);
  const int n = name_counts()[base]++;
  return n == 0 ? base : fmt::format("{}_{}", base, n);
}

void clear_session() {
  std::lock_guard lock(g_names_mutex);
  name_counts().clear();
}

const char* intern(const std::string& text) {
  static std::mutex mutex;
  static auto& texts = immortal<std::set<std::string>>();
  std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

void fail_in(const LayerState& state, const std::string& message) {
  throw errors::InvalidArgument(message +
                                where_text(state.stable_name, state.site));
}

Lifted::Lifted()
    : guard_(nullptr),
      follows_(t_state.follows),
      strategy_(t_state.strategy),
      replica_(t_state.replica) {
  t_state.follows = -1;
  if (replica_) {
    // Making variables in a scope does not change the strategy.
    t_state.strategy = const_cast<StrategyScope*>(&replica_->strategy());
    t_state.replica = nullptr;
  } else if (keras_thread().step) {
    t_state.strategy = keras_thread().step->strategy_;
  }
}

Lifted::~Lifted() {
  t_state.follows = follows_;
  t_state.strategy = strategy_;
  t_state.replica = replica_;
}

GlobalStep::GlobalStep(StrategyScope* strategy)
    : outer_(keras_thread().step),
      open_(t_state.strategy),
      strategy_(strategy),
      own_trace_(t_state.tracers < 2) {
  keras_thread().step = this;
  t_state.strategy = nullptr;
}

GlobalStep::~GlobalStep() {
  keras_thread().step = outer_;
  t_state.strategy = open_;
}

const StrategyScope* GlobalStep::strategy_here() {
  if (t_state.strategy != nullptr) return t_state.strategy;
  return keras_thread().step ? keras_thread().step->strategy_ : nullptr;
}

bool GlobalStep::active() {
  return keras_thread().step && keras_thread().step->own_trace_;
}

void check_loss(const LayerState& from, const Tensor& loss) {
  if (loss.defined() && loss.rank() == 0) return;
  fail_in(from, "{}: a loss is {}; expected a scalar", from.type,
          loss.defined() ? loss.shape().str() : "an empty tensor");
}

CallLosses::CallLosses()
    : outer_(keras_thread().losses), tracers_(t_state.tracers) {
  keras_thread().losses = this;
}
CallLosses::~CallLosses() { keras_thread().losses = outer_; }
bool CallLosses::wanted() { return keras_thread().losses != nullptr; }
Tensors CallLosses::gathered() {
  return keras_thread().losses ? keras_thread().losses->all_ : Tensors();
}
void CallLosses::check_trace(const LayerState& from, const char* what) {
  if (t_state.tracers == keras_thread().losses->tracers_) return;
  throw errors::Unimplemented(fmt::format(
      "{}: adds to {} inside of a loop, a branch or another function of the "
      "step; expected it outside: call the layer there, or leave it out{}",
      from.type, what, where_text(from.stable_name, from.site)));
}
void CallLosses::add(const LayerState& from, const Tensor& loss) {
  if (!keras_thread().losses) return;
  check_trace(from, "the training loss");
  check_loss(from, loss);
  keras_thread().losses->all_.push_back(loss);
}
void CallLosses::add_metric(const LayerState& from, const std::string& name,
                            const Tensor& value) {
  if (!keras_thread().losses) return;
  check_trace(from, "the metrics");
  if (!value.defined()) {
    fail_in(from, "{}: add_metric(\"{}\") got an empty tensor", from.type,
            name);
  }
  Tensor v =
      value.dtype() == float32 ? value : math::cast(value, float32, from.site);
  if (v.rank() > 0) v = math::reduce_mean(v, {}, from.site);
  keras_thread().losses->metrics_.emplace_back(name.empty() ? from.name : name,
                                               v);
}
CallLosses::Metrics CallLosses::metrics() const {
  Metrics means;
  std::map<std::string, int> times;
  for (const auto& [name, value] : metrics_) {
    if (times[name]++ == 0) {
      means.emplace_back(name, value);
      continue;
    }
    for (auto& [other, sum] : means) {
      if (other == name) sum = sum + value;
    }
  }
  for (auto& [name, sum] : means) {
    if (times[name] > 1) sum = sum * (1.0 / times[name]);
  }
  return means;
}

LayerCall::LayerCall(const LayerState& state, std::optional<bool> training)
    : state_(state),
      outer_(std::exchange(keras_thread().call, this)),
      parts_of_(std::exchange(keras_thread().parts_of, nullptr)),
      layer_(t_state.layer),
      site_(t_state.site),
      outer_training_(keras_thread().training),
      training_(training.value_or(keras_thread().training)),
      weights_(weights_dtype(state)) {
  if (!state.scope.device.empty()) {
    const DeviceName own = DeviceName::parse(state.scope.device);
    const DeviceScope* at = t_state.scope;
    if (at && at->kind == ScopeKind::kUser && !are_compatible(own, at->name)) {
      clash_ = at;
      if (!config::get_soft_device_placement()) {
        keras_thread().call = outer_;
        throw errors::InvalidArgument(describe_clash());
      }
    }
    push_scope(&scope_, own, state.scope.site);
    scope_.kind = ScopeKind::kLayer;
    scoped_ = true;
  }
  t_state.layer =
      parts_of_ ? intern(fmt::format("{}/{}", parts_of_, state.stable_name))
                : state.stable_name;
  if (const StrategyScope* strategy = GlobalStep::strategy_here()) {
    const std::string device = strategy->device_of_layer(t_state.layer);
    if (!device.empty() && !scoped_) {
      push_scope(&scope_, DeviceName::parse(device), state.site);
      scope_.kind = ScopeKind::kLayer;
      scoped_ = true;
    }
  }
  t_state.site = state.site;
  keras_thread().training = training_;
}

LayerCall::~LayerCall() {
  keras_thread().call = outer_;
  keras_thread().parts_of = parts_of_;
  if (scoped_) pop_scope(&scope_);
  t_state.layer = layer_;
  t_state.site = site_;
  keras_thread().training = outer_training_;
}

void LayerCall::name_parts() { keras_thread().parts_of = t_state.layer; }
const LayerCall* LayerCall::current() { return keras_thread().call; }
std::string LayerCall::path() const {
  return outer_ ? outer_->path() + "/" + state_.name : state_.name;
}

std::string LayerCall::describe_clash() const {
  return fmt::format(
      "made in device(\"{}\"){} and called in device(\"{}\"){}: the scope it "
      "was made in counts; call it there too, or make it outside of scopes",
      state_.scope.device, where_text(state_.stable_name, state_.site),
      clash_->name.str(), where_text(nullptr, clash_->site));
}

void LayerCall::report_scope(const Tensors& x, const Tensors& y) const {
  if (clash_ == nullptr) return;
  constexpr const char* kId = "layer-scope";
  if (config::soft_device_placement() == config::SoftPlacement::kSilent) {
    return count_diagnostic(kId);
  }
  int64_t bytes = 0;
  bool known = true;
  for (const Tensors* list : {&x, &y}) {
    for (const Tensor& t : *list) {
      const int64_t n = t.num_elements();
      known &= n >= 0;
      bytes +=
          std::max<int64_t>(n, 0) * static_cast<int64_t>(size_of(t.dtype()));
    }
  }
  report_once(
      state_.name + "\n" + clash_->name.str(),
      {kId, debugging::Severity::kLint,
       fmt::format("{}; each call moves {} between them", describe_clash(),
                   known       ? bytes_text(bytes)
                   : bytes > 0 ? "at least " + bytes_text(bytes)
                               : "its values"),
       clash_->site});
}

}  // namespace berth::keras
