// Sequential.

#include "berth/keras/models.h"
#include "function/abstract_call.h"
#include "keras/config/classes.h"
#include "keras/models/input_layer.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

namespace {

class SequentialBase final : public LayerBase {
 public:
  SequentialBase(std::vector<Layer> layers, const SequentialOptions& o,
                 Site site)
      : LayerBase("Sequential", o.name, site), layers_(std::move(layers)) {
    if (layers_.empty()) {
      fail("Sequential: there are no layers; expected at least one");
    }
    for (const Layer& l : layers_) track(l);
    const LayerState& first = layers_[0].base()->state();
    state().num_inputs = first.num_inputs;
    state().input_names = first.input_names.empty()
                              ? std::vector<std::string>{first.name}
                              : first.input_names;
    const LayerState& last = layers_.back().base()->state();
    state().output_names = last.output_names.empty()
                               ? std::vector<std::string>{last.name}
                               : last.output_names;
  }

  Config get_config() const override {
    std::vector<Config> list;
    for (const Layer& l : layers_) list.push_back(layers::serialize(l));
    return Config({{"layers", list}});
  }

  Tensors call(const Tensors& inputs, bool training) override {
    Tensors x = inputs;
    for (const Layer& l : layers_) x = l(x, training);
    return x;
  }

 private:
  const std::vector<Layer> layers_;
};

struct SequentialArgs {
  std::vector<Layer> layers;
  SequentialOptions o;
  Shape build_input_shape;  // what Keras wrote, if it was built
  void fields(Fields& f) {
    f.must("layers", layers);
    f("build_input_shape", build_input_shape);
    f("name", o.name);
  }
  Layer make(Site site) const {
    Sequential model(layers, o, site);
    if (!model.built() && build_input_shape.rank() > 0) {
      model.build(build_input_shape);
    }
    return model;
  }
};

}  // namespace

Sequential::Sequential(std::vector<Layer> layers, SequentialOptions options,
                       Site site)
    : Model(std::make_shared<SequentialBase>(layers, options, site)) {
  auto* input = dynamic_cast<InputLayerBase*>(layers[0].base().get());
  if (input) build(input->spec().shape, input->spec().dtype);
}

void add_sequential_classes(Classes& c) {
  c.layers["Sequential"] = &layer_of<SequentialArgs>;
}

}  // namespace berth::keras
