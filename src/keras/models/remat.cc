// Recomputes what gradients need.

#include "keras/models/remat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "berth/errors.h"
#include "berth/keras/models.h"
#include "function/abstract_call.h"
#include "keras/models/layer_state.h"
#include "keras/models/masks.h"
#include "keras/models/thread_state.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

using Kind = RematMode::Kind;

constexpr std::array<const char*, 4> kModes = {"full", "activations",
                                               "larger_than", "list_of_layers"};
constexpr std::array<const char*, 7> kActivationLayers = {
    "Activation", "ELU",     "LeakyReLU",      "PReLU",
    "ReLU",       "Softmax", "ThresholdedReLU"};

class InsideUnit {
 public:
  InsideUnit() : outer_(std::exchange(keras_thread().recomputes, true)) {}
  ~InsideUnit() { keras_thread().recomputes = outer_; }
  InsideUnit(const InsideUnit&) = delete;
  InsideUnit& operator=(const InsideUnit&) = delete;

 private:
  const bool outer_;
};

bool is_model(LayerBase& layer) {
  const std::string& type = layer.state().type;
  return type == "Model" || type == "Sequential" ||
         dynamic_cast<ModelBase*>(&layer) != nullptr;
}

// Elements of an example's outputs, whatever the batch.
int64_t output_size(LayerBase& layer, const Tensors& in) {
  std::vector<Shape> shapes = layer.state().build.output_shapes;
  if (shapes.empty()) {
    const InsideUnit plain;
    std::vector<TensorSpec> specs;
    for (const Tensor& t : in) specs.push_back(t.spec());
    const auto call = [&](const Tensors& x) { return layer.call(x, true); };
    for (const TensorSpec& s : abstract_call(call, specs)) {
      shapes.push_back(s.shape);
    }
  }
  int64_t n = 0;
  for (const Shape& shape : shapes) {
    int64_t one = 1;
    for (int i = 1; i < shape.rank(); ++i) {
      one *= std::max<int64_t>(shape[i], 1);
    }
    n += one;
  }
  return n;
}

}  // namespace

RematScope::RematScope(const std::string& mode, RematOptions options, Site site)
    : outer_(keras_thread().remat) {
  const auto at = std::find(kModes.begin(), kModes.end(), mode);
  if (at == kModes.end()) {
    throw errors::InvalidArgument(fmt::format(
        "RematScope: mode is \"{}\"{}; expected \"full\", \"activations\", "
        "\"larger_than\" or \"list_of_layers\"",
        mode, where_text(nullptr, site)));
  }
  mode_ = std::make_shared<const RematMode>(
      RematMode{static_cast<Kind>(at - kModes.begin()), std::move(options)});
  keras_thread().remat = this;
}
RematScope::~RematScope() { keras_thread().remat = outer_; }
std::shared_ptr<const RematMode> RematScope::current() {
  return keras_thread().remat ? keras_thread().remat->mode_ : nullptr;
}

bool recomputes(LayerBase& layer, const Tensors& in) {
  if (keras_thread().recomputes || t_state.top == nullptr) return false;
  const LayerState& s = layer.state();
  const RematOptions& o = s.remat->options;
  switch (s.remat->kind) {
    case Kind::kFull:
      return !is_model(layer) && s.type != "InputLayer";
    case Kind::kActivations:
      return std::any_of(kActivationLayers.begin(), kActivationLayers.end(),
                         [&](const char* type) { return s.type == type; });
    case Kind::kLargerThan:
      return !is_model(layer) && s.type != "InputLayer" &&
             output_size(layer, in) > o.output_size_threshold;
    case Kind::kListOfLayers:
      return std::find(o.layer_names.begin(), o.layer_names.end(), s.name) !=
             o.layer_names.end();
  }
  return false;
}

bool recomputes_activations() {
  const LayerCall* call = LayerCall::current();
  return call && call->training() && !keras_thread().recomputes &&
         t_state.top && call->state().remat &&
         call->state().remat->kind == Kind::kActivations;
}

Tensors recomputed_call(LayerBase& layer, const Tensors& in) {
  const LayerState& s = layer.state();
  Tensors args = in;
  std::vector<size_t> masked_in;
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor mask = Masks::of(in[i]);
    if (!mask.defined()) continue;
    masked_in.push_back(i);
    args.push_back(mask);
  }
  // What comes out: the outputs, masks of some, losses, metrics.
  size_t num_outputs = 0, num_losses = 0;
  std::vector<size_t> masked_out;
  std::vector<std::string> metric_names;
  const bool losses = CallLosses::wanted();
  const Tensors results = call_recomputed(
      [&](const Tensors& x) {
        const InsideUnit unit;
        for (size_t k = 0; k < masked_in.size(); ++k) {
          Masks::set(x[masked_in[k]], x[in.size() + k]);
        }
        const CallLosses inner;
        Tensors y = layer.call(
            {x.begin(), x.begin() + static_cast<std::ptrdiff_t>(in.size())},
            true);
        num_outputs = y.size();
        for (size_t i = 0; i < num_outputs; ++i) {
          const Tensor mask = Masks::of(y[i]);
          if (!mask.defined()) continue;
          masked_out.push_back(i);
          y.push_back(mask);
        }
        if (!losses) return y;
        num_losses = inner.all().size();
        y.insert(y.end(), inner.all().begin(), inner.all().end());
        for (const auto& [name, value] : inner.metrics()) {
          metric_names.push_back(name);
          y.push_back(value);
        }
        return y;
      },
      args, s.site);
  auto next = results.begin() + static_cast<std::ptrdiff_t>(num_outputs);
  const Tensors y(results.begin(), next);
  for (const size_t i : masked_out) Masks::set(y[i], *next++);
  for (size_t i = 0; i < num_losses; ++i) CallLosses::add(s, *next++);
  for (const std::string& name : metric_names) {
    CallLosses::add_metric(s, name, *next++);
  }
  return y;
}

}  // namespace berth::keras
