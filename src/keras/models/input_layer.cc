// InputLayer, and Input() of functional models.

#include "keras/models/input_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/where.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/models/keras_node.h"
#include "keras/models/layer_checks.h"
#include "keras/models/masks.h"

namespace berth::keras {

namespace {

struct InputArgs {
  Shape batch_shape;  // with the batch in front
  InputOptions o;
  void fields(Fields& f) {
    f.must("batch_shape", batch_shape);
    f("dtype", o.dtype);
    f("name", o.name);
  }
  Layer make(Site site) const {
    Shape shape = batch_shape;
    int64_t batch = kUnknownDim;
    if (shape.rank() > 0) {
      batch = shape[0];
      shape.erase(0);
    }
    return Layer(std::make_shared<InputLayerBase>(shape, o, site, batch));
  }
};

}  // namespace

InputLayerBase::InputLayerBase(const Shape& shape, const InputOptions& o,
                               Site site, int64_t batch)
    : LayerBase("InputLayer", o.name, site),
      spec_{shape, o.dtype, state().name} {
  bool good = shape.rank() < kMaxRank && o.dtype != resource &&
              o.dtype != DType::kInvalid;
  for (int64_t dim : shape) good = good && dim >= kUnknownDim;
  good = good && batch >= kUnknownDim;
  if (!good || !can_be(shape, o.dtype)) {
    fail_in(state(),
            "Input: the shape is [{}], {}; expected at most {} "
            "dimensions, each 0 or more, or -1 where it is open, with "
            "fewer than 2^62 bytes together, and a dtype of values",
            fmt::join(shape, ", "), name_of(o.dtype), kMaxRank - 1);
  }
  spec_.shape.insert(0, batch);
  state().description = description({}, InputArgs{spec_.shape, o});
}

Tensors InputLayerBase::call(const Tensors& inputs, bool) {
  Tensor x = one_input(state(), inputs);
  // A model inside of another gets what layers computed in 16 bits.
  if (is_floating(x.dtype()) && is_floating(spec_.dtype) &&
      x.dtype() != spec_.dtype) {
    const Tensor mask = Masks::of(x);
    x = math::cast(x, spec_.dtype, site());
    if (mask.defined()) Masks::set(x, mask);
  }
  // As in Keras, a batch that was declared binds nobody.
  Shape shape = spec_.shape;
  shape[0] = kUnknownDim;
  if (x.dtype() != spec_.dtype || !x.shape().compatible_with(shape)) {
    fail_in(state(), "the model's input is {}; expected {}", x.spec().str(),
            spec_.str());
  }
  return {x};
}

InputLayer::InputLayer(Shape shape, InputOptions options, Site site)
    : Layer(std::make_shared<InputLayerBase>(shape, options, site)) {}

// A layer of its own, since one that is called twice has no single output.
Layer::Layer(const KerasTensor& input) {
  const LayerBase& made_by = *input.node()->layer.base();
  const auto* declared = dynamic_cast<const InputLayerBase*>(&made_by);
  if (declared == nullptr) {
    throw errors::InvalidArgument(fmt::format(
        "the output of layer \"{}\"{} stands among the layers of a model; "
        "expected layers, and keras::Input() in front of them at most",
        made_by.name(), where_text(nullptr, made_by.site())));
  }
  TensorSpec spec = declared->spec();
  const int64_t batch = spec.shape[0];
  spec.shape.erase(0);
  base_ = std::make_shared<InputLayerBase>(
      spec.shape, InputOptions{spec.dtype, spec.name}, made_by.site(), batch);
}

KerasTensor Input(Shape shape, InputOptions options, Site site) {
  return described_input(
      std::make_shared<InputLayerBase>(shape, options, site));
}

KerasTensor described_input(const std::shared_ptr<LayerBase>& layer) {
  const auto& base = dynamic_cast<const InputLayerBase&>(*layer);
  auto node =
      std::make_shared<KerasNode>(KerasNode{Layer(layer), {}, {base.spec()}});
  layer->state().graph.nodes.push_back(node);
  return KerasTensor(std::move(node), 0);
}

void add_input_classes(Classes& c) {
  c.layers["InputLayer"] = &layer_of<InputArgs>;
}

}  // namespace berth::keras
