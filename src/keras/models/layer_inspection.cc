// What is known of a layer without computing: shapes, its calls in models that
// are described, its place.

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/keras/models.h"
#include "function/abstract_call.h"
#include "keras/models/input_layer.h"
#include "keras/models/keras_node.h"
#include "keras/models/layer_state.h"
#include "keras/models/masks.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

Shape with_open_dims(Shape shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) shape[i] = kUnknownDim;
  }
  return shape;
}

// Describes a Sequential with known inputs: its layers, one after the other.
void describe_sequential(const Layer& model) {
  LayerState& s = model.base()->state();
  if (s.type != "Sequential" || !s.graph.outputs.empty()) return;
  if (!s.build.done || s.build.input_specs.size() != 1 || s.parts.empty())
    return;
  const bool has_input =
      dynamic_cast<InputLayerBase*>(s.parts[0].base().get()) != nullptr;
  KerasTensors x;
  if (has_input) {
    auto node = std::make_shared<KerasNode>(
        KerasNode{s.parts[0], {}, {s.build.input_specs[0]}});
    s.parts[0].base()->state().graph.nodes = {node};
    x.emplace_back(std::move(node), 0);
  } else {
    const Shape& of = s.build.input_specs[0].shape;
    Shape shape;
    for (int i = 1; i < of.rank(); ++i) shape.push_back(of[i]);
    x.push_back(Input(
        shape,
        {.dtype = s.build.input_specs[0].dtype, .name = s.name + "_input"},
        s.site));
  }
  const KerasTensors inputs = x;
  for (size_t i = has_input ? 1 : 0; i < s.parts.size(); ++i) {
    x = s.parts[i].outputs_of(x);
  }
  s.graph.inputs = inputs;
  s.graph.outputs = x;
}

std::shared_ptr<KerasNode> only_call(const Layer& layer, const char* what) {
  LayerState& s = layer.base()->state();
  std::vector<std::shared_ptr<KerasNode>> live;
  {
    const std::lock_guard lock(s.build.mutex);
    for (const auto& node : s.graph.nodes) {
      if (auto n = node.lock()) live.push_back(std::move(n));
    }
  }
  if (live.size() == 1) return live[0];
  throw errors::FailedPrecondition(
      fmt::format("{}: layer \"{}\" was called with KerasTensors {} times{}; "
                  "expected once: keep what the call gave",
                  what, s.name, live.size(), where_text(nullptr, s.site)));
}

KerasTensor one_of(const Layer& layer, const KerasTensors& list,
                   const char* what) {
  if (list.size() == 1) return list[0];
  fail_in(layer.base()->state(),
          "{}: there are {} of them; expected one: {}s() has them all", what,
          list.size(), what);
}

}  // namespace

KerasTensors Layer::inputs() const {
  describe_sequential(*this);
  const LayerState& s = base_->state();
  if (!s.graph.outputs.empty()) return s.graph.inputs;
  return only_call(*this, "input")->inputs;
}
KerasTensors Layer::outputs() const {
  describe_sequential(*this);
  const LayerState& s = base_->state();
  if (!s.graph.outputs.empty()) return s.graph.outputs;
  const std::shared_ptr<KerasNode> node = only_call(*this, "output");
  KerasTensors list;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    list.emplace_back(node, static_cast<int>(i));
  }
  return list;
}
KerasTensor Layer::input() const { return one_of(*this, inputs(), "input"); }
KerasTensor Layer::output() const { return one_of(*this, outputs(), "output"); }

std::string Layer::path() const {
  const LayerState& s = base_->state();
  return s.path.empty() ? s.name : s.path;
}

void Layer::build(const std::vector<Shape>& inputs, DType dtype) const {
  std::vector<TensorSpec> specs;
  for (const Shape& shape : inputs) specs.push_back({shape, dtype, {}});
  compute_output_spec(specs);
}

std::vector<TensorSpec> Layer::compute_output_spec(
    const std::vector<TensorSpec>& inputs) const {
  std::vector<TensorSpec> specs = inputs;
  for (TensorSpec& spec : specs) spec.shape = with_open_dims(spec.shape);
  return abstract_call([&](const Tensors& x) { return (*this)(x, false); },
                       specs);
}

Shape Layer::compute_output_shape(const Shape& input, DType dtype) const {
  const auto specs = compute_output_spec({{input, dtype, {}}});
  if (specs.size() == 1) return specs[0].shape;
  fail_in(base_->state(),
          "compute_output_shape: {} has {} outputs; expected one: "
          "compute_output_spec() has them all",
          base_->state().type, specs.size());
}

bool Layer::supports_masking() const {
  return reads_or_passes_masks(base_->state().type);
}

std::vector<Layer> Model::layers() const { return base()->state().parts; }

Layer Model::get_layer(const std::string& name) const {
  describe_sequential(*this);
  const std::vector<Layer>& parts = base()->state().parts;
  std::string known;
  for (const Layer& l : parts) {
    if (l.name() == name) return l;
    known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", l.name());
  }
  throw errors::NotFound(fmt::format(
      "get_layer: model \"{}\" has no layer \"{}\"{}; expected one of {}",
      this->name(), name, where_text(nullptr, base()->state().site), known));
}

Layer Model::get_layer(int64_t index) const {
  describe_sequential(*this);
  const std::vector<Layer>& parts = base()->state().parts;
  const auto n = static_cast<int64_t>(parts.size());
  if (index >= -n && index < n) {
    return parts[static_cast<size_t>(index < 0 ? index + n : index)];
  }
  throw errors::OutOfRange(
      fmt::format("get_layer: model \"{}\" has {} layers, and is asked for "
                  "number {}{}; expected one of them",
                  name(), n, index, where_text(nullptr, base()->state().site)));
}

std::vector<std::string> Model::input_names() const {
  return base()->state().input_names;
}
std::vector<std::string> Model::output_names() const {
  return base()->state().output_names;
}

}  // namespace berth::keras
