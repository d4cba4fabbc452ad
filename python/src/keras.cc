// Layers, models and their parts. The classes of Keras are Python's
// (berth/keras): they hold a handle of these as __berth__.

#include <fmt/format.h>

#include <sstream>

#include "base/needs_values.h"
#include "callbacks.h"
#include "classes.h"
#include "convert.h"
#include "held.h"
#include "keras/models/keras_node.h"
#include "keras/models/layer_state.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using keras::KerasTensors;
using keras::Layer;
using keras::Model;

Tensors tensors_in(nb::handle list) {
  Tensors all;
  for (nb::handle t : list) all.push_back(tensor_of(t.ptr()));
  return all;
}
nb::list shapes_of(const std::vector<Shape>& shapes) {
  nb::list all;
  for (const Shape& s : shapes) all.append(to_python(s));
  return all;
}
nb::list values_of(const KerasTensors& tensors) {
  nb::list all;
  for (const auto& t : tensors) all.append(to_python(t));
  return all;
}
// What a class of the user's does, found through a weak reference: the object
// of Python holds the layer, not the other way round.
class Back {
 public:
  explicit Back(nb::handle self)
      : weak_(held(nb::steal(PyWeakref_NewRef(self.ptr(), nullptr)))) {}
  nb::object self() const {
    nb::object o = (*weak_)();
    if (o.is_none()) {
      throw errors::FailedPrecondition(
          "the Python object of a layer is gone; keep it while its model is "
          "used");
    }
    return o;
  }

 private:
  Held weak_;
};

// True while JSON is written in which layers of the user's are names alone;
// berth/keras/saving.py adds what they are.
thread_local bool t_outline = false;

template <class Base>
class Own : public Base {
 public:
  Own(nb::handle self, const std::string& type, const std::string& name)
      : Base(type, name, site_of_caller()), back_(self) {}
  void build(const std::vector<Shape>& inputs) override {
    const Gil gil;
    back_.self().attr("_build_of_engine")(shapes_of(inputs));
  }
  Tensors call(const Tensors& inputs, bool training) override {
    const Gil gil;
    return tensors_in(
        back_.self().attr("_call_of_engine")(to_python(inputs), training));
  }
  keras::Config get_config() const override {
    return t_outline ? keras::Config() : Base::get_config();
  }
  using Base::add_loss;
  using Base::add_metric;
  using Base::add_weight;
  using Base::track;

 protected:
  Back back_;
};
using OwnLayer = Own<keras::LayerBase>;

class OwnModel final : public Own<keras::ModelBase> {
 public:
  using Own::Own;
  keras::StepLogs train_step(const keras::StepData& data) override {
    return step("train_step", data,
                [&] { return ModelBase::train_step(data); });
  }
  keras::StepLogs test_step(const keras::StepData& data) override {
    return step("test_step", data, [&] { return ModelBase::test_step(data); });
  }
  Tensor loss_of(const keras::StepData& data, const Tensors& y_pred) {
    return compute_loss(data, y_pred);
  }
  void update(const keras::StepData& data, const Tensors& y_pred) {
    update_metrics(data, y_pred);
  }

 private:
  template <class Otherwise>
  keras::StepLogs step(const char* name, const keras::StepData& data,
                       const Otherwise& otherwise) {
    const Gil gil;
    const nb::object self = back_.self();
    if (!nb::cast<bool>(self.attr("_overrides")(name))) {
      const Free free;
      return otherwise();
    }
    nb::object logs;
    try {
      logs = self.attr("_step_of_engine")(name, to_python(data.x),
                                          to_python(data.y),
                                          to_python(data.sample_weight));
    } catch (nb::python_error& e) {
      if (!nb::hasattr(e.value(), "needs_values")) throw;
      throw Untraceable<errors::FailedPrecondition>(
          nb::cast<std::string>(nb::str(e.value())));
    }
    keras::StepLogs out;
    for (auto [key, value] : nb::cast<nb::dict>(logs)) {
      out.emplace_back(nb::cast<std::string>(key),
                       tensor_of(value.ptr(), float32));
    }
    return out;
  }
};

template <class T>
T& own(const Layer& layer) {
  auto* base = dynamic_cast<T*>(layer.base().get());
  if (!base) {
    throw errors::InvalidArgument(
        layer.name() + ": only a layer of your own class can do this");
  }
  return *base;
}

// A metric of the user's class.
class OwnMetric final : public keras::MetricBase {
 public:
  OwnMetric(nb::handle self, const std::string& name)
      : MetricBase(name), back_(self) {}
  void build(const Shape&, const Shape&) override {}  // Python's __init__ did
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    const Gil gil;
    back_.self().attr("_update_of_engine")(
        nb::make_tuple(to_python(y_true), to_python(y_pred)),
        to_python(weight));
  }
  void update_values(const Tensor& values, const Tensor& weight) override {
    const Gil gil;
    back_.self().attr("_update_of_engine")(nb::make_tuple(to_python(values)),
                                           to_python(weight));
  }
  Tensor result() override {
    const Gil gil;
    return tensor_of(back_.self().attr("result")().ptr(), float32);
  }
  nb::object self() const { return back_.self(); }
  using MetricBase::add_variable;

 private:
  Back back_;
};

// (name or "", tensor) pairs.
keras::NamedTensors named(nb::handle pairs) {
  std::map<std::string, Tensor> by_name;
  Tensors in_order;
  for (nb::handle p : pairs) {
    const auto name = nb::cast<std::string>(p[0]);
    const Tensor t = tensor_of(p[1].ptr());
    if (name.empty()) {
      in_order.push_back(t);
    } else {
      by_name[name] = t;
    }
  }
  if (!by_name.empty()) return by_name;
  return in_order;
}

template <class T>
keras::PerOutput<T> per_output(nb::handle pairs) {
  keras::PerOutput<T> all;
  for (nb::handle p : pairs) {
    const auto name = nb::cast<std::string>(p[0]);
    if (!name.empty()) all.names.push_back(name);
    all.push_back(From<T>::get(p[1].ptr(), DType::kInvalid));
  }
  return all;
}

Tensor tensor_or_none(nb::handle o) {
  return o.is_none() ? Tensor() : tensor_of(o.ptr());
}

keras::FitOptions fit_options(const nb::dict& d) {
  keras::FitOptions o;
  o.epochs = nb::cast<int>(d["epochs"]);
  o.batch_size = nb::cast<int64_t>(d["batch_size"]);
  o.verbose = nb::cast<int>(d["verbose"]);
  o.callbacks = callbacks_of(d["callbacks"]);
  o.shuffle = nb::cast<bool>(d["shuffle"]);
  o.validation_split = nb::cast<double>(d["validation_split"]);
  o.validation_freq = nb::cast<int>(d["validation_freq"]);
  o.steps_per_epoch = nb::cast<int64_t>(d["steps_per_epoch"]);
  o.validation_steps = nb::cast<int64_t>(d["validation_steps"]);
  o.validation_batch_size = nb::cast<int64_t>(d["validation_batch_size"]);
  o.initial_epoch = nb::cast<int>(d["initial_epoch"]);
  o.sample_weight = tensor_or_none(d["sample_weight"]);
  o.class_weight = nb::cast<std::map<int64_t, double>>(d["class_weight"]);
  const nb::object validation = d["validation_data"];
  if (nb::isinstance<data::Dataset>(validation)) {
    o.validation_data = nb::cast<const data::Dataset&>(validation);
  } else if (!validation.is_none()) {
    o.validation_data =
        keras::ValidationData(named(validation[0]), named(validation[1]),
                              tensor_or_none(validation[2]));
  }
  return o;
}

nb::object history_of(const keras::History& h) {
  nb::dict values;
  for (const auto& [name, list] : h.history) {
    values[name.c_str()] = nb::cast(list);
  }
  nb::dict d;
  d["epoch"] = nb::cast(h.epoch);
  d["history"] = values;
  d["seconds"] = nb::cast(h.seconds);
  d["fallback_ops"] = h.fallback_ops;
  d["fallback_bytes"] = h.fallback_bytes;
  return d;
}

nb::object fit(Model& model, nb::handle x, nb::handle y, nb::dict options) {
  const keras::FitOptions o = fit_options(options);
  const Site site = site_of_caller();
  const bool whole = nb::isinstance<data::Dataset>(x);
  const auto in = whole ? keras::NamedTensors() : named(x);
  const auto out = whole ? keras::NamedTensors() : named(y);
  keras::History h;
  {
    const data::Dataset* d =
        whole ? &nb::cast<const data::Dataset&>(x) : nullptr;
    const Free free;
    h = d ? model.fit(*d, o, site) : model.fit(in, out, o, site);
  }
  return history_of(h);
}

nb::object evaluate(Model& model, nb::handle x, nb::handle y,
                    nb::dict options) {
  keras::EvaluateOptions o;
  o.batch_size = nb::cast<int64_t>(options["batch_size"]);
  o.verbose = nb::cast<int>(options["verbose"]);
  o.steps = nb::cast<int64_t>(options["steps"]);
  o.sample_weight = tensor_or_none(options["sample_weight"]);
  o.callbacks = callbacks_of(options["callbacks"]);
  const Site site = site_of_caller();
  if (nb::isinstance<data::Dataset>(x)) {
    const auto& d = nb::cast<const data::Dataset&>(x);
    const auto logs = [&] {
      const Free free;
      return model.evaluate(d, o, site);
    }();
    return logs_of(logs);
  }
  const auto in = named(x), out = named(y);
  const auto logs = [&] {
    const Free free;
    return model.evaluate(in, out, o, site);
  }();
  return logs_of(logs);
}

nb::object predict(Model& model, nb::handle x, nb::dict options) {
  keras::PredictOptions o;
  o.batch_size = nb::cast<int64_t>(options["batch_size"]);
  o.steps = nb::cast<int64_t>(options["steps"]);
  o.callbacks = callbacks_of(options["callbacks"]);
  const Site site = site_of_caller();
  Tensors out;
  if (nb::isinstance<data::Dataset>(x)) {
    const auto& d = nb::cast<const data::Dataset&>(x);
    const Free free;
    out = model.predict(d, o, site);
  } else {
    const auto in = named(x);
    const Free free;
    out = model.predict(in, o, site);
  }
  return to_python(out);
}

void compile(Model& model, nb::dict d) {
  keras::CompileOptions o;
  o.optimizer =
      From<keras::Optimizer>::get(nb::object(d["optimizer"]).ptr(), {});
  const nb::object losses = d["loss"];
  if (nb::isinstance<nb::list>(losses)) {
    o.losses = per_output<keras::Loss>(losses);
  } else {
    o.loss = From<keras::Loss>::get(losses.ptr(), {});
  }
  if (!d["loss_weights"].is_none()) {
    o.loss_weights = per_output<double>(d["loss_weights"]);
  }
  using Metrics = std::vector<keras::Metric>;
  const auto metrics = [&](const char* key, Metrics& all,
                           std::map<std::string, Metrics>& by_output) {
    const nb::object given = d[key];
    if (nb::isinstance<nb::dict>(given)) {
      for (auto [name, list] : nb::cast<nb::dict>(given)) {
        by_output[nb::cast<std::string>(name)] =
            From<Metrics>::get(list.ptr(), {});
      }
    } else {
      all = From<Metrics>::get(given.ptr(), {});
    }
  };
  metrics("metrics", o.metrics, o.metrics_by_output);
  metrics("weighted_metrics", o.weighted_metrics, o.weighted_metrics_by_output);
  o.run_eagerly = nb::cast<bool>(d["run_eagerly"]);
  o.auto_scale_loss = nb::cast<bool>(d["auto_scale_loss"]);
  o.slices = nb::cast<int>(d["slices"]);
  const auto placement = nb::cast<std::string>(d["placement"]);
  if (!placement.empty()) o.placement = placement;
  o.contracts = contracts_of(d["contracts"]);
  model.compile(std::move(o), site_of_caller());
}

void add_layer(nb::module_& m) {
  nb::class_<keras::KerasTensor>(m, "KerasTensor", nb::dynamic_attr())
      .def_prop_ro("shape",
                   [](const keras::KerasTensor& t) { return t.shape(); })
      .def_prop_ro("dtype", [](const keras::KerasTensor& t) {
        return PyDType{t.dtype()};
      });
  nb::class_<Layer>(m, "Layer")
      .def("__init__",
           [](Layer* self, nb::handle object, const std::string& type,
              const std::string& name) {
             new (self) Layer(std::make_shared<OwnLayer>(object, type, name));
           })
      .def(
          "call",
          [](const Layer& l, nb::list x, std::optional<bool> training) {
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
          },
          "x"_a, "training"_a.none())
      .def("describe",
           [](const Layer& l, nb::list x, std::vector<size_t> met) {
             KerasTensors in;
             for (nb::handle t : x) {
               in.push_back(nb::cast<const keras::KerasTensor&>(t));
             }
             KerasTensors out;
             {
               const Free free;
               out = l.outputs_of(in);
             }
             if (met.size() == in.size() && !out.empty()) {
               out[0].node()->met = std::move(met);
             }
             return values_of(out);
           })
      .def("build",
           [](const Layer& l, nb::list shapes) {
             std::vector<Shape> in;
             for (nb::handle s : shapes) {
               in.push_back(From<Shape>::get(s.ptr(), {}));
             }
             const Free free;
             l.build(in);
           })
      .def(
          "add_weight",
          [](const Layer& l, const std::string& name, nb::handle shape,
             nb::handle initializer, bool trainable, nb::handle regularizer,
             nb::handle constraint) {
            keras::WeightOptions o;
            o.trainable = trainable;
            o.regularizer =
                From<keras::Regularizer>::get(regularizer.ptr(), {});
            o.constraint = From<keras::Constraint>::get(constraint.ptr(), {});
            const Shape s = From<Shape>::get(shape.ptr(), {});
            const auto init =
                From<keras::Initializer>::get(initializer.ptr(), {});
            if (auto* model = dynamic_cast<OwnModel*>(l.base().get())) {
              return model->add_weight(name, s, init, o);
            }
            return own<OwnLayer>(l).add_weight(name, s, init, o);
          },
          "name"_a, "shape"_a, "initializer"_a, "trainable"_a,
          "regularizer"_a.none(), "constraint"_a.none())
      .def("add_loss",
           [](const Layer& l, nb::handle value) {
             const Tensor t = tensor_of(value.ptr(), float32);
             if (auto* model = dynamic_cast<OwnModel*>(l.base().get())) {
               return model->add_loss(t);
             }
             own<OwnLayer>(l).add_loss(t);
           })
      .def("track",
           [](const Layer& l, const Layer& part) {
             if (auto* model = dynamic_cast<OwnModel*>(l.base().get())) {
               model->track(part);
             } else {
               own<OwnLayer>(l).track(part);
             }
           })
      .def("track_variable",
           [](const Layer& l, const Variable& v) {
             auto& state = l.base()->state();
             (v.trainable() ? state.weights.trainable : state.weights.other)
                 .push_back(v);
           })
      .def_prop_ro("compute_dtype",
                   [](const Layer& l) { return PyDType{l.compute_dtype()}; })
      .def_prop_ro("dtype_policy",
                   [](const Layer& l) { return l.dtype_policy(); })
      .def("inputs", [](const Layer& l) { return values_of(l.inputs()); })
      .def("outputs", [](const Layer& l) { return values_of(l.outputs()); })
      .def("same_as",
           [](const Layer& a, const Layer& b) { return a.base() == b.base(); })
      .def("key",
           [](const Layer& l) {
             return reinterpret_cast<uintptr_t>(l.base().get());
           })
      .def_prop_ro("name", [](const Layer& l) { return l.name(); })
      .def_prop_ro("path", [](const Layer& l) { return l.path(); })
      .def_prop_ro("built", &Layer::built)
      .def_prop_rw("trainable", &Layer::trainable,
                   [](Layer& l, bool v) { l.set_trainable(v); })
      .def("input", &Layer::input)
      .def("output", &Layer::output)
      .def("weights", [](const Layer& l) { return to_python(l.weights()); })
      .def("trainable_variables",
           [](const Layer& l) { return to_python(l.trainable_variables()); })
      .def(
          "non_trainable_variables",
          [](const Layer& l) { return to_python(l.non_trainable_variables()); })
      .def("losses", [](const Layer& l) { return to_python(l.losses()); })
      .def("count_params", &Layer::count_params)
      .def("compute_output_shape",
           [](const Layer& l, nb::handle s) {
             return l.compute_output_shape(From<Shape>::get(s.ptr(), {}));
           })
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

void add_model(nb::module_& m) {
  nb::class_<Model, Layer>(m, "Model")
      .def("__init__",
           [](Model* self, nb::handle object, const std::string& type,
              const std::string& name) {
             new (self) Model(std::make_shared<OwnModel>(object, type, name));
           })
      .def_static("functional",
                  [](nb::list in, nb::list out, const std::string& name) {
                    KerasTensors inputs, outputs;
                    for (nb::handle t : in) {
                      inputs.push_back(nb::cast<const keras::KerasTensor&>(t));
                    }
                    for (nb::handle t : out) {
                      outputs.push_back(nb::cast<const keras::KerasTensor&>(t));
                    }
                    return Model(inputs, outputs, {.name = name},
                                 site_of_caller());
                  })
      .def_static("sequential",
                  [](nb::list layers, const std::string& name) -> Model {
                    std::vector<Layer> all;
                    for (nb::handle l : layers) {
                      all.push_back(From<Layer>::get(l.ptr(), {}));
                    }
                    return keras::Sequential(all, {.name = name},
                                             site_of_caller());
                  })
      .def("compile", &compile)
      .def("fit", &fit, "x"_a.none(), "y"_a.none(), "options"_a)
      .def("evaluate", &evaluate, "x"_a.none(), "y"_a.none(), "options"_a)
      .def("predict", &predict)
      .def(
          "train_on_batch",
          [](Model& model, nb::handle x, nb::handle y, nb::handle weight,
             const std::map<int64_t, double>& class_weight) {
            const auto in = named(x), out = named(y);
            const keras::OnBatchOptions o{tensor_or_none(weight), class_weight};
            const Site site = site_of_caller();
            const Free free;
            return model.train_on_batch(in, out, o, site);
          },
          "x"_a.none(), "y"_a.none(), "weight"_a.none(), "class_weight"_a)
      .def(
          "test_on_batch",
          [](Model& model, nb::handle x, nb::handle y, nb::handle weight) {
            const auto in = named(x), out = named(y);
            const keras::OnBatchOptions o{tensor_or_none(weight), {}};
            const Site site = site_of_caller();
            const Free free;
            return model.test_on_batch(in, out, o, site);
          },
          "x"_a.none(), "y"_a.none(), "weight"_a.none())
      .def("optimizer", [](const Model& model) { return model.optimizer(); })
      .def("compute_loss",
           [](const Model& model, nb::list x, nb::list y, nb::list weight,
              nb::list y_pred) {
             return own<OwnModel>(model).loss_of(
                 {tensors_in(x), tensors_in(y), tensors_in(weight)},
                 tensors_in(y_pred));
           })
      .def("update_metrics",
           [](const Model& model, nb::list x, nb::list y, nb::list weight,
              nb::list y_pred) {
             own<OwnModel>(model).update(
                 {tensors_in(x), tensors_in(y), tensors_in(weight)},
                 tensors_in(y_pred));
           })
      .def("metrics_names", &Model::metrics_names)
      .def("metrics", &Model::metrics)
      .def("metrics_result",
           [](const Model& model) {
             return logs_of(freely([&] { return model.metrics_result(); }));
           })
      .def("reset_metrics", &Model::reset_metrics, nb::call_guard<Free>())
      .def("stop_training", &Model::stop_training)
      .def("layers", &Model::layers)
      .def("input_names", &Model::input_names)
      .def("output_names", &Model::output_names)
      .def("placement", [](const Model& m) { return m.placement().str(); })
      .def("placement_json",
           [](const Model& m) { return m.placement().json(); })
      .def("explain", [](const Model& m,
                         const std::string& op) { return m.explain(op).str(); })
      .def("train_plan_text",
           [](const Model& m, const std::string& stage) {
             return m.train_plan_text(stage);
           })
      .def("save",
           [](const Model& model, const std::string& path, bool overwrite,
              bool optimizer) {
             const Site site = site_of_caller();
             const Free free;
             model.save(
                 path, {.overwrite = overwrite, .include_optimizer = optimizer},
                 site);
           })
      .def("save_weights",
           [](const Model& model, const std::string& path, bool overwrite) {
             const Site site = site_of_caller();
             const Free free;
             model.save_weights(path, {.overwrite = overwrite}, site);
           })
      .def("load_weights",
           [](const Model& model, const std::string& path, bool skip) {
             const Site site = site_of_caller();
             const Free free;
             model.load_weights(path, {.skip_mismatch = skip}, site);
           })
      .def("to_json", [](const Model& model) { return model.to_json(); })
      .def("summary", [](const Model& model) {
        std::ostringstream out;
        model.summary(out);
        return out.str();
      });
  m.def("load_model", [](const std::string& path, bool compile) {
    const Site site = site_of_caller();
    const Free free;
    return keras::load_model(path, {.compile = compile}, site);
  });
  // The model's JSON, in which layers of the user's have no config.
  m.def("outline", [](const Layer& model) {
    t_outline = true;
    struct End {
      ~End() { t_outline = false; }
    } end;
    return keras::layers::serialize(model).str();
  });
  // `made`: layers of the classes "made_0", "made_1" in the text.
  m.def(
      "model_from_json",
      [](const std::string& text, const std::vector<Layer>& made) {
        const keras::CustomObjectScope scope;
        for (size_t i = 0; i < made.size(); ++i) {
          keras::register_custom_object(
              fmt::format("made_{}", i),
              [layer = made[i]](const keras::Config&) { return layer; });
        }
        return keras::model_from_json(text, site_of_caller());
      },
      "text"_a, "made"_a = std::vector<Layer>());
}

void add_parts(nb::module_& m) {
  nb::class_<keras::Callback>(m, "Callback");
  nb::class_<keras::DTypePolicy>(m, "DTypePolicy")
      .def(nb::init<const std::string&>())
      .def_prop_ro("name", [](const keras::DTypePolicy& p) { return p.name(); })
      .def_prop_ro("compute_dtype",
                   [](const keras::DTypePolicy& p) {
                     return std::string(name_of(p.compute_dtype()));
                   })
      .def_prop_ro("variable_dtype", [](const keras::DTypePolicy& p) {
        return std::string(name_of(p.variable_dtype()));
      });
  m.def("set_global_policy", [](nb::handle p) {
    keras::mixed_precision::set_global_policy(
        From<keras::DTypePolicy>::get(p.ptr(), {}));
  });
  m.def("global_policy",
        [] { return keras::mixed_precision::global_policy(); });
  nb::class_<keras::Loss>(m, "Loss")
      .def(
          "__call__",
          [](const keras::Loss& l, nb::handle y_true, nb::handle y_pred,
             nb::handle weight) {
            const Tensor p = tensor_of(y_pred.ptr());
            const Tensor t = tensor_of(y_true.ptr());
            const Site site = site_of_caller();
            const Tensor w = weight.is_none()
                                 ? Tensor()
                                 : tensor_of(weight.ptr(), p.dtype());
            const Free free;
            return w.defined() ? l(t, p, w, site) : l(t, p, site);
          },
          "y_true"_a, "y_pred"_a, "sample_weight"_a.none() = nb::none())
      .def_prop_ro("name", [](const keras::Loss& l) { return l.name(); });
  m.def("own_loss", [](const std::string& name, nb::object fn,
                       const std::string& reduction) {
    return keras::Loss(
        name,
        [fn = held(std::move(fn))](const Tensor& y_true, const Tensor& y_pred) {
          const Gil gil;
          return tensor_of((*fn)(to_python(y_true), to_python(y_pred)).ptr(),
                           y_pred.dtype());
        },
        {.reduction = reduction});
  });
  m.def("own_metric", [](nb::handle self, const std::string& name) {
    return keras::Metric(std::make_shared<OwnMetric>(self, name));
  });
  m.def("add_metric_variable", [](const keras::Metric& metric,
                                  const std::string& name, nb::handle shape) {
    return dynamic_cast<OwnMetric&>(*metric.base())
        .add_variable(name, From<Shape>::get(shape.ptr(), {}));
  });
  // The object of Python behind a metric of the user's; else None.
  m.def("owner_of_metric", [](const keras::Metric& metric) -> nb::object {
    const auto* own = dynamic_cast<OwnMetric*>(metric.base().get());
    return own ? own->self() : nb::none();
  });
  nb::class_<keras::Metric>(m, "Metric")
      .def(
          "update_state",
          [](const keras::Metric& metric, nb::handle a, nb::handle b,
             nb::handle weight) {
            const Tensor first = tensor_of(a.ptr());
            const Tensor second = tensor_or_none(b);
            const Tensor w = tensor_or_none(weight);
            const Free free;
            if (second.defined()) return metric.update_state(first, second, w);
            if (!w.defined()) return metric.update_state(first);
            metric.update_state(first, keras::MetricWeights{w});
          },
          "y_true"_a, "y_pred"_a.none() = nb::none(),
          "sample_weight"_a.none() = nb::none())
      .def(
          "result",
          [](const keras::Metric& metric) { return metric.result_tensor(); },
          nb::call_guard<Free>())
      .def("reset_state", &keras::Metric::reset_state, nb::call_guard<Free>())
      .def("variables",
           [](const keras::Metric& metric) {
             return to_python(metric.variables());
           })
      .def_prop_ro("name",
                   [](const keras::Metric& metric) { return metric.name(); });
  nb::class_<keras::Initializer>(m, "Initializer")
      .def(
          "__call__",
          [](const keras::Initializer& i, nb::handle shape, nb::handle dtype) {
            const Shape s = From<Shape>::get(shape.ptr(), {});
            const DType d =
                dtype.is_none() ? float32 : From<DType>::get(dtype.ptr(), {});
            return freely([&] { return i(s, d); });
          },
          "shape"_a, "dtype"_a.none() = nb::none());
  nb::class_<keras::Regularizer>(m, "Regularizer")
      .def("__call__", [](const keras::Regularizer& r, nb::handle x) {
        const Tensor t = tensor_of(x.ptr());
        return freely([&] { return r(t); });
      });
  nb::class_<keras::Constraint>(m, "Constraint");
  nb::class_<keras::LearningRateSchedule>(m, "LearningRateSchedule")
      .def("__call__", [](const keras::LearningRateSchedule& s, nb::handle n) {
        const Tensor t = tensor_of(n.ptr(), float32);
        return freely([&] { return s(cast(t, float32, {})); });
      });
  nb::class_<keras::Optimizer>(m, "Optimizer")
      .def("apply",
           [](const keras::Optimizer& o, nb::list grads, nb::list variables) {
             Tensors g;
             for (nb::handle x : grads) g.push_back(tensor_or_none(x));
             std::vector<Variable> v;
             for (nb::handle x : variables) {
               v.push_back(From<Variable>::get(x.ptr(), {}));
             }
             const Site site = site_of_caller();
             const Free free;
             o.apply_gradients(g, v, site);
           })
      .def("scale_loss",
           [](const keras::Optimizer& o, nb::handle loss) {
             return to_python(
                 o.scale_loss(tensor_of(loss.ptr()), site_of_caller()));
           })
      .def("build",
           [](const keras::Optimizer& o, nb::list variables) {
             const auto all =
                 From<std::vector<Variable>>::get(variables.ptr(), {});
             const Free free;
             o.build(all);
           })
      .def(
          "learning_rate",
          [](const keras::Optimizer& o) { return o.learning_rate(); },
          nb::call_guard<Free>())
      .def("schedule",
           [](const keras::Optimizer& o) -> nb::object {
             return o.schedule() ? nb::cast(o.schedule()) : nb::none();
           })
      .def("set_learning_rate",
           [](const keras::Optimizer& o, double rate) {
             const Site site = site_of_caller();
             const Free free;
             o.set_learning_rate(rate, site);
           })
      .def(
          "iterations",
          [](const keras::Optimizer& o) { return o.iterations(); },
          nb::call_guard<Free>())
      .def("variables",
           [](const keras::Optimizer& o) { return to_python(o.variables()); })
      .def_prop_ro("name", [](const keras::Optimizer& o) { return o.name(); });
}

}  // namespace

void add_keras(nb::module_& m) {
  add_parts(m);
  add_layer(m);
  add_model(m);
}

}  // namespace berth::python
