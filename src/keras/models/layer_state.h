// What every layer has, and what is set on the thread while one runs.

#ifndef BERTH_KERAS_MODELS_LAYER_STATE_H_
#define BERTH_KERAS_MODELS_LAYER_STATE_H_

#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/keras/layers.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/replica_scope.h"
#include "ops/autocast.h"

namespace berth::keras {

struct Description;  // keras/config/fields.h
struct RematMode;    // keras/models/remat.h

struct LayerState {
  std::string type;         // "Dense"
  std::string name;         // "dense_1"
  const char* stable_name;  // the name, for ever: traces and tapes keep it
  std::string path;         // "model/dense", from the build on
  Site site = {};
  size_t num_inputs = 1;
  // For models whose inputs and outputs have names; else empty.
  std::vector<std::string> input_names, output_names;
  std::shared_ptr<const Description> description;  // null: get_config() says

  // The device scope that was open at construction.
  struct Scope {
    std::string device;  // "" none
    Site site;           // the line that opened it
  } scope;

  // The first call: makes weights, sees shapes.
  struct Build {
    std::mutex mutex;
    std::atomic<bool> done{false};
    // Written once, under the mutex.
    std::vector<TensorSpec> input_specs;
    std::vector<Shape> output_shapes;
  } build;

  struct Weights {
    std::vector<Variable> trainable, other;
    std::atomic<bool> learns{true};  // false: they are frozen
    std::vector<std::pair<Variable, Constraint>> constraints;
  } weights;
  std::vector<Layer> parts;

  // Under a mixed policy, what is cast; see inputs_for().
  DTypePolicy policy;
  struct Casts {
    bool inputs = true, weights = true, outputs = true;
  } casts;
  bool on_host = false;  // computes with values at once; has no weights

  // What goes into the training loss.
  struct Losses {
    std::vector<std::pair<Variable, Regularizer>> regularized;
    std::vector<std::function<Tensor()>> added;
    Regularizer activity;
  } losses;

  // How values are kept for gradients; null: all are.
  std::shared_ptr<const RematMode> remat;

  // For lint_layers.h.
  struct Lint {
    bool made_in_trace = false;
    std::atomic<bool> is_part{false};  // of another layer
    std::atomic<int64_t> eager_calls{0}, traced_calls{0};
  } lint;

  // The layer in models that are described.
  struct Graph {
    std::vector<std::weak_ptr<KerasNode>> nodes;  // its calls; build.mutex
    KerasTensors inputs, outputs;  // of a model: from where to where it leads
  } graph;
};

// Nothing of a trace, tape or replica is seen until the end of the block: what
// is created here lives on. It belongs to the strategy of the step or replica
// that is being traced, else to that whose scope is open.
class Lifted {
 public:
  Lifted();
  ~Lifted();
  Lifted(const Lifted&) = delete;
  Lifted& operator=(const Lifted&) = delete;

 private:
  const DispatchGuard guard_;
  const int32_t follows_;
  StrategyScope* const strategy_;
  ReplicaScope* const replica_;
};

// A step on the global batch is being traced: it is in no scope of a strategy,
// though what is lifted out of it belongs to one (null: to none).
class GlobalStep {
 public:
  explicit GlobalStep(StrategyScope* strategy);
  ~GlobalStep();
  GlobalStep(const GlobalStep&) = delete;
  GlobalStep& operator=(const GlobalStep&) = delete;
  // True when one stands on this thread, and its trace is the step's own: not
  // when the step became part of another function.
  static bool active();
  // The strategy of the open scope or of the step; null: none.
  static const StrategyScope* strategy_here();

 private:
  GlobalStep* const outer_;
  StrategyScope* const open_;  // its scope, put aside
  StrategyScope* const strategy_;
  const bool own_trace_;
  friend class Lifted;
};

// A layer runs: ops report it, its device scope is open. Throws
// errors::InvalidArgument under policy error when the scope that the user calls
// it in contradicts the one that it was made in.
class LayerCall {
 public:
  LayerCall(const LayerState& state, std::optional<bool> training);
  ~LayerCall();
  LayerCall(const LayerCall&) = delete;
  LayerCall& operator=(const LayerCall&) = delete;

  bool training() const { return training_; }
  // Names what the layer that runs now calls as its parts, "block/up".
  static void name_parts();
  // The innermost one of this thread; null: none.
  static const LayerCall* current();
  const LayerState& state() const { return state_; }
  // The names of the layers that run, "model/block/dense".
  std::string path() const;
  // Lint "layer-scope": the two scopes differ, so that arguments and results
  // travel. Once per layer and scope.
  void report_scope(const Tensors& x, const Tensors& y) const;

 private:
  std::string describe_clash() const;

  const LayerState& state_;
  const LayerCall* const outer_;
  const char* const parts_of_;
  const char* const layer_;
  const Site site_;
  const bool outer_training_;
  bool training_;
  const AutocastScope weights_;
  // The user's scope, if it contradicts the layer's.
  const DeviceScope* clash_ = nullptr;
  DeviceScope scope_;
  bool scoped_ = false;  // scope_ is open: the layer's, or the strategy's
};

// What the layer reads trainable weights as.
DType weights_dtype(const LayerState& s);
// Inputs as the layer computes with them; masks go along.
Tensors inputs_for(const LayerState& s, const Tensors& x);
// Makes what a layer of one part computed in float32 what its policy says.
void cast_outputs(const LayerState& s, Tensors* y);
// The layer or a part does.
bool computes_in_float16(const LayerState& s);

// Fails unless `loss`, which the layer adds to the training loss, is a scalar.
void check_loss(const LayerState& from, const Tensor& loss);

// Gathers the losses that depend on inputs (activity regularizers, add_loss()
// in call()) and the values of add_metric() of the layers that run on this
// thread, until the end of the block; the innermost one does. Without one they
// are not computed.
class CallLosses {
 public:
  using Metrics = std::vector<std::pair<std::string, Tensor>>;

  CallLosses();
  ~CallLosses();
  CallLosses(const CallLosses&) = delete;
  CallLosses& operator=(const CallLosses&) = delete;

  const Tensors& all() const { return all_; }
  static bool wanted();
  // Those that the innermost one has; none without.
  static Tensors gathered();
  // Throws errors::Unimplemented in a loop or branch that is being traced,
  // from which the loss could not come out.
  static void add(const LayerState& from, const Tensor& loss);

  // The means of what add_metric() got under each name.
  Metrics metrics() const;
  // Throws as add(), and errors::InvalidArgument for an empty tensor.
  static void add_metric(const LayerState& from, const std::string& name,
                         const Tensor& value);

 private:
  static void check_trace(const LayerState& from, const char* what);
  CallLosses* const outer_;
  const int32_t tracers_;
  Tensors all_;
  Metrics metrics_;
};

// Returns "dense", then "dense_1", ... for type "Dense".
std::string next_layer_name(const std::string& type);

// Returns the text at an address that stays valid.
const char* intern(const std::string& text);

// Throws errors::InvalidArgument: "<message> (layer "dense", model.cc:41)".
[[noreturn]] void fail_in(const LayerState& state, const std::string& message);
template <class First, class... More>
[[noreturn]] void fail_in(const LayerState& state,
                          fmt::format_string<First, More...> text,
                          First&& first, More&&... more) {
  fail_in(state, fmt::format(text, std::forward<First>(first),
                             std::forward<More>(more)...));
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_LAYER_STATE_H_
