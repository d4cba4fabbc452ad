#include "keras/layers/input_layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/where.h"
#include "keras/classes.h"
#include "keras/keras_node.h"
#include "keras/layers/layer_util.h"

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
    if (shape.rank() > 0) shape.erase(0);
    return InputLayer(shape, o, site);
  }
};

}  // namespace

InputLayerBase::InputLayerBase(const Shape& shape, const InputOptions& o,
                               Site site)
    : LayerBase("InputLayer", o.name, site),
      spec_{shape, o.dtype, state().name} {
  bool good = shape.rank() < kMaxRank && o.dtype != resource &&
              o.dtype != DType::kInvalid;
  for (int64_t dim : shape) good = good && dim >= kUnknownDim;
  if (!good || !can_be(shape, o.dtype)) {
    fail(
        fmt::format("Input: the shape is [{}], {}; expected at most {} "
                    "dimensions, each 0 or more, or -1 where it is open, with "
                    "fewer than 2^62 bytes together, and a dtype of values",
                    fmt::join(shape, ", "), name_of(o.dtype), kMaxRank - 1));
  }
  spec_.shape.insert(0, kUnknownDim);
  state().description = description({}, InputArgs{spec_.shape, o});
}

Tensors InputLayerBase::call(const Tensors& inputs, bool) {
  const Tensor& x = one_input(state(), inputs);
  if (x.dtype() != spec_.dtype || !x.shape().compatible_with(spec_.shape)) {
    fail(fmt::format("the model's input is {}; expected {}", x.spec().str(),
                     spec_.str()));
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
  spec.shape.erase(0);
  base_ = std::make_shared<InputLayerBase>(
      spec.shape, InputOptions{spec.dtype, spec.name}, made_by.site());
}

KerasTensor Input(Shape shape, InputOptions options, Site site) {
  auto base = std::make_shared<InputLayerBase>(shape, options, site);
  const TensorSpec spec = base->spec();
  auto node = std::make_shared<KerasNode>(KerasNode{Layer(base), {}, {spec}});
  base->state().nodes.push_back(node);
  return KerasTensor(std::move(node), 0);
}

void add_input_classes(Classes& c);
void add_input_classes(Classes& c) {
  c.layers["InputLayer"] = &layer_of<InputArgs>;
}

}  // namespace berth::keras
