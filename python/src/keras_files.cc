// Layers, models and their parts as Keras' JSON, for the files that
// berth/keras/saving.py writes.

#include "berth/keras/saving.h"
#include "classes.h"
#include "convert.h"
#include "keras/callbacks/chief_only.h"
#include "keras/models/functional_config.h"
#include "keras/models/input_layer.h"
#include "keras/models/layer_state.h"
#include "keras/optimizers/optimizer_base.h"

namespace berth::python {

using keras::Config;
using keras::Layer;
using keras::Model;

namespace {

bool is_compiled(const Model& model) {
  try {
    model.optimizer();
    return true;
  } catch (const errors::FailedPrecondition&) {
    return false;
  }
}

std::string part_config(nb::handle o) {
  if (nb::isinstance<keras::Optimizer>(o)) {
    return keras::optimizers::serialize(nb::cast<const keras::Optimizer&>(o))
        .str();
  }
  if (nb::isinstance<keras::Loss>(o)) {
    return keras::losses::serialize(nb::cast<const keras::Loss&>(o)).str();
  }
  if (nb::isinstance<keras::Metric>(o)) {
    return keras::metrics::serialize(nb::cast<const keras::Metric&>(o)).str();
  }
  throw nb::type_error("expected a layer, model, optimizer, loss or metric");
}

}  // namespace

void add_keras_files(nb::module_& m) {
  m.def("layer_config",
        [](const Layer& l) { return keras::layers::serialize(l).str(); });
  m.def("layer_type", [](const Layer& l) { return l.base()->state().type; });
  m.def("as_model", [](const Layer& l) { return Model(l.base()); });
  m.def(
      "task_of",
      [](const Model& model) {
        const auto core = keras::tasks_of(model);
        return nb::make_tuple(core ? core->place() : 0,
                              !core || core->is_chief());
      },
      "(number, whether it is the chief) of this process among the tasks that "
      "train the model: (0, True) where there is one.");
  // The tensor that an InputLayer declares.
  m.def("described_input",
        [](const Layer& l) { return keras::described_input(l.base()); });
  // Names of a model's inputs and outputs, where they are not the layers'.
  m.def("name_ends", [](const Layer& l, std::vector<std::string> inputs,
                        std::vector<std::string> outputs) {
    auto& state = l.base()->state();
    if (!inputs.empty()) state.input_names = std::move(inputs);
    if (!outputs.empty()) state.output_names = std::move(outputs);
  });
  // The layers of a functional model in the order of Berth's older files.
  m.def("as_reached", [](const Layer& l) {
    const auto& s = l.base()->state();
    return keras::UsesOfLayers(s.graph.inputs, s.graph.outputs).as_reached();
  });
  m.def("parts", [](const Layer& l) { return l.base()->state().parts; });
  m.def("compile_config", [](const Model& model) -> nb::object {
    if (!is_compiled(model)) return nb::none();
    return to_python(model.get_compile_config().str());
  });
  m.def("is_compiled", &is_compiled);
  m.def("part_config", &part_config);
  m.def("layer_from_config", [](const std::string& text) {
    const Site site = site_of_caller();
    return keras::layers::deserialize(Config::parse(text, site), site);
  });
  m.def("optimizer_from_config", [](const std::string& text) {
    return keras::optimizers::deserialize(Config::parse(text));
  });
  m.def("optimizer_slots", [](const keras::Optimizer& o, nb::list variables) {
    const auto all = From<std::vector<Variable>>::get(variables.ptr(), {});
    std::vector<std::vector<Variable>> found;
    {
      const Free free;
      found = o.base()->slots_of(all);
    }
    nb::list slots;
    for (const auto& of_one : found) slots.append(to_python(of_one));
    return slots;
  });
  m.def("loss_from_config", [](const std::string& text) {
    return keras::losses::deserialize(Config::parse(text));
  });
  m.def("metric_from_config", [](const std::string& text) {
    return keras::metrics::deserialize(Config::parse(text));
  });
}

}  // namespace berth::python
