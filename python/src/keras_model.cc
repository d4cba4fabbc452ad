// Models: compile, fit, evaluate, predict, and their files.

#include <fmt/format.h>

#include <sstream>

#include "callbacks.h"
#include "classes.h"
#include "fits_report.h"
#include "held.h"
#include "own_classes.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

using keras::KerasTensors;
using keras::Layer;
using keras::Model;

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
  d["input_seconds"] = nb::cast(h.input_seconds);
  d["fallback_ops"] = h.fallback_ops;
  d["fallback_bytes"] = h.fallback_bytes;
  return d;
}

// fn(replicas, pipelines, number of the pipeline) -> Dataset.
keras::utils::experimental::DatasetCreator creator_of(nb::handle fn) {
  return keras::utils::experimental::DatasetCreator(
      [made = held(nb::borrow(fn))](const distribute::InputContext& c) {
        const Gil gil;
        return nb::cast<data::Dataset>((*made)(c.num_replicas_in_sync,
                                               c.num_input_pipelines,
                                               c.input_pipeline_id));
      });
}

nb::object fit(Model& model, nb::handle x, nb::handle y, nb::dict options) {
  const keras::FitOptions o = fit_options(options);
  const Site site = site_of_caller();
  if (PyCallable_Check(x.ptr()) != 0) {
    const auto creator = creator_of(x);
    return history_of(freely([&] { return model.fit(creator, o, site); }));
  }
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
  o.gradient_norms = nb::cast<bool>(d["gradient_norms"]);
  const auto placement = nb::cast<std::string>(d["placement"]);
  if (!placement.empty()) o.placement = placement;
  o.contracts = contracts_of(d["contracts"]);
  model.compile(std::move(o), site_of_caller());
}

Model functional(nb::list in, nb::list out, const std::string& name) {
  return Model(keras_tensors_in(in), keras_tensors_in(out), {.name = name},
               site_of_caller());
}

Model sequential(nb::list layers, const std::string& name) {
  std::vector<Layer> all;
  for (nb::handle l : layers) all.push_back(From<Layer>::get(l.ptr(), {}));
  return keras::Sequential(all, {.name = name}, site_of_caller());
}

void add_training(nb::class_<Model, Layer>& c) {
  c.def("__init__",
        [](Model* self, nb::handle object, const std::string& type,
           const std::string& name) {
          new (self) Model(std::make_shared<OwnModel>(object, type, name));
        })
      .def_static("functional", &functional)
      .def_static("sequential", &sequential)
      .def("compile", &compile)
      .def("fit", &fit, "x"_a.none(), "y"_a.none(), "options"_a)
      .def("evaluate", &evaluate, "x"_a.none(), "y"_a.none(), "options"_a)
      .def("predict", &predict)
      .def("fits",
           [](Model& model, int64_t batch, int64_t memory_bytes) {
             const Site site = site_of_caller();
             const keras::FitsReport r =
                 freely([&] { return model.fits(batch, memory_bytes, site); });
             return fits_tuple(r, r.memory);
           })
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
          "x"_a.none(), "y"_a.none(), "weight"_a.none());
}

void add_step(nb::class_<Model, Layer>& c) {
  c.def("optimizer", [](const Model& model) { return model.optimizer(); })
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
      .def("stop_training", &Model::stop_training);
}

void add_reports(nb::class_<Model, Layer>& c) {
  c.def("layers", &Model::layers)
      .def("input_names", &Model::input_names)
      .def("output_names", &Model::output_names)
      .def("placement", &Model::placement)
      .def("explain", &Model::explain)
      .def("train_plan_text",
           [](const Model& m, const std::string& stage) {
             return m.train_plan_text(stage);
           })
      .def("to_json", [](const Model& model) { return model.to_json(); })
      .def("summary", [](const Model& model) {
        std::ostringstream out;
        model.summary(out);
        return out.str();
      });
}

void add_files(nb::class_<Model, Layer>& c) {
  c.def("save",
        [](const Model& model, const std::string& path, bool overwrite,
           bool optimizer) {
          const Site site = site_of_caller();
          const Free free;
          model.save(path,
                     {.overwrite = overwrite, .include_optimizer = optimizer},
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
           });
}

void add_loading(nb::module_& m) {
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

}  // namespace

void add_models(nb::module_& m) {
  nb::class_<Model, Layer> c(m, "Model");
  add_training(c);
  add_step(c);
  add_reports(c);
  add_files(c);
  add_loading(m);
}

}  // namespace berth::python
