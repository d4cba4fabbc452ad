// Layers and symbolic tensors. The classes of Keras are Python's (berth/keras):
// they hold a handle of these as __berth__.

#include "classes.h"
#include "keras/models/keras_node.h"
#include "own_classes.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using keras::KerasTensors;
using keras::Layer;

nb::list values_of(const KerasTensors& tensors) {
  nb::list all;
  for (const auto& t : tensors) all.append(to_python(t));
  return all;
}

nb::object call_layer(const Layer& l, nb::list x,
                      std::optional<bool> training) {
  const Tensors in = tensors_in(x);
  Tensors out;
  {
    const Free free;
    out = l(in, training);
  }
  if (tape_is_open()) {
    for (const Variable& v : l.trainable_variables()) note_read(v);
  }
  return to_python(out);
}

nb::list describe(const Layer& l, nb::list x, std::vector<size_t> met) {
  const KerasTensors in = keras_tensors_in(x);
  const KerasTensors out = freely([&] { return l.outputs_of(in); });
  if (met.size() == in.size() && !out.empty()) {
    out[0].node()->met = std::move(met);
  }
  return values_of(out);
}

// Calls `fn` with the object that a class of the user's derives from.
template <class Fn>
auto with_own(const Layer& l, const Fn& fn) {
  if (auto* model = dynamic_cast<OwnModel*>(l.base().get())) return fn(*model);
  return fn(own<OwnLayer>(l));
}

Variable add_weight(const Layer& l, const std::string& name, nb::handle shape,
                    nb::handle initializer, bool trainable,
                    nb::handle regularizer, nb::handle constraint) {
  keras::WeightOptions o;
  o.trainable = trainable;
  o.regularizer = From<keras::Regularizer>::get(regularizer.ptr(), {});
  o.constraint = From<keras::Constraint>::get(constraint.ptr(), {});
  const Shape s = From<Shape>::get(shape.ptr(), {});
  const auto init = From<keras::Initializer>::get(initializer.ptr(), {});
  return with_own(l,
                  [&](auto& own) { return own.add_weight(name, s, init, o); });
}

void add_symbolic_tensor(nb::module_& m) {
  nb::class_<keras::KerasTensor>(m, "KerasTensor", nb::dynamic_attr())
      .def_prop_ro("shape",
                   [](const keras::KerasTensor& t) { return t.shape(); })
      .def_prop_ro("dtype", [](const keras::KerasTensor& t) {
        return to_python(t.dtype());
      });
}

void add_layer_calls(nb::class_<Layer>& c) {
  c.def("__init__",
        [](Layer* self, nb::handle object, const std::string& type,
           const std::string& name) {
          new (self) Layer(std::make_shared<OwnLayer>(object, type, name));
        })
      .def("call", &call_layer, "x"_a, "training"_a.none())
      .def("describe", &describe)
      .def("build",
           [](const Layer& l, nb::list shapes) {
             std::vector<Shape> in;
             for (nb::handle s : shapes) {
               in.push_back(From<Shape>::get(s.ptr(), {}));
             }
             const Free free;
             l.build(in);
           })
      .def("inputs", [](const Layer& l) { return values_of(l.inputs()); })
      .def("outputs", [](const Layer& l) { return values_of(l.outputs()); })
      .def("input", &Layer::input)
      .def("output", &Layer::output)
      .def("compute_output_shape", [](const Layer& l, nb::handle s) {
        return l.compute_output_shape(From<Shape>::get(s.ptr(), {}));
      });
}

void add_layer_weights(nb::class_<Layer>& c) {
  c.def("add_weight", &add_weight, "name"_a, "shape"_a, "initializer"_a,
        "trainable"_a, "regularizer"_a.none(), "constraint"_a.none())
      .def("add_loss",
           [](const Layer& l, nb::handle value) {
             const Tensor t = tensor_of(value.ptr(), float32);
             with_own(l, [&](auto& own) { own.add_loss(t); });
           })
      .def("track",
           [](const Layer& l, const Layer& part) {
             with_own(l, [&](auto& own) { own.track(part); });
           })
      .def("track_variable",
           [](const Layer& l, const Variable& v) {
             auto& state = l.base()->state();
             (v.trainable() ? state.weights.trainable : state.weights.other)
                 .push_back(v);
           })
      .def("weights", [](const Layer& l) { return to_python(l.weights()); })
      .def("trainable_variables",
           [](const Layer& l) { return to_python(l.trainable_variables()); })
      .def(
          "non_trainable_variables",
          [](const Layer& l) { return to_python(l.non_trainable_variables()); })
      .def("losses", [](const Layer& l) { return to_python(l.losses()); })
      .def("count_params", &Layer::count_params)
      .def("get_weights",
           [](const Layer& l) {
             nb::list all;
             for (const Tensor& t : l.get_weights()) all.append(array_of(t));
             return all;
           })
      .def("set_weights", [](const Layer& l, nb::list values) {
        Tensors all;
        for (nb::handle v : values) all.push_back(tensor_of(v.ptr()));
        freely([&] { l.set_weights(all); });
      });
}

void add_layer_properties(nb::class_<Layer>& c) {
  c.def_prop_ro("name", [](const Layer& l) { return l.name(); })
      .def_prop_ro("path", [](const Layer& l) { return l.path(); })
      .def_prop_ro("built", &Layer::built)
      .def_prop_rw("trainable", &Layer::trainable,
                   [](Layer& l, bool v) { l.set_trainable(v); })
      .def_prop_ro("compute_dtype",
                   [](const Layer& l) { return to_python(l.compute_dtype()); })
      .def_prop_ro("dtype_policy",
                   [](const Layer& l) { return l.dtype_policy(); })
      .def("same_as",
           [](const Layer& a, const Layer& b) { return a.base() == b.base(); })
      .def("key", [](const Layer& l) {
        return reinterpret_cast<uintptr_t>(l.base().get());
      });
}

}  // namespace

void add_layers(nb::module_& m) {
  add_symbolic_tensor(m);
  nb::class_<Layer> c(m, "Layer");
  add_layer_calls(c);
  add_layer_weights(c);
  add_layer_properties(c);
}

}  // namespace berth::python
