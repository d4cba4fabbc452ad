// The parts of models: policies, losses, metrics, initializers, optimizers. The
// classes of Keras are Python's (berth/keras): they hold a handle of these as
// __berth__.

#include "arguments.h"
#include "classes.h"
#include "keras/optimizers/update_context.h"
#include "op/device_scope.h"
#include "own_classes.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

void add_policies(nb::module_& m) {
  nb::class_<keras::Callback>(m, "Callback");
  nb::class_<keras::DTypePolicy> c(m, "DTypePolicy");
  construct<keras::DTypePolicy>(
      c, "Policy", [](keras::DTypePolicy* self, Arguments& a) {
        static constexpr Name kNames[] = {{"name", "name"}};
        a.bind(kNames, 1);
        new (self) keras::DTypePolicy(a.get<std::string>(0));
      });
  c.def_prop_ro("name", [](const keras::DTypePolicy& p) { return p.name(); })
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
}

void add_losses(nb::module_& m) {
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
}

void add_own_metrics(nb::module_& m) {
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
}

void add_metrics(nb::module_& m) {
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
}

void add_initializers(nb::module_& m) {
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
}

void add_optimizers(nb::module_& m) {
  m.def("check_update_context", [](nb::list variables) {
    std::vector<Variable> v;
    for (nb::handle x : variables)
      v.push_back(From<Variable>::get(x.ptr(), {}));
    set_site(site_of_caller());
    keras::check_update_context(v);
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
      .def(
          "scale_loss",
          [](const keras::Optimizer& o, nb::handle loss) {
            return to_python(
                o.scale_loss(tensor_of(loss.ptr()), site_of_caller()));
          },
          "loss"_a, "The loss times the scale of a LossScaleOptimizer.")
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
      .def(
          "schedule",
          [](const keras::Optimizer& o) -> nb::object {
            return o.schedule() ? nb::cast(o.schedule()) : nb::none();
          },
          "The schedule of the learning rate, or None.")
      .def(
          "set_learning_rate",
          [](const keras::Optimizer& o, double rate) {
            const Site site = site_of_caller();
            const Free free;
            o.set_learning_rate(rate, site);
          },
          "rate"_a, "Sets the learning rate.")
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
  add_policies(m);
  add_losses(m);
  add_own_metrics(m);
  add_metrics(m);
  add_initializers(m);
  add_optimizers(m);
  add_layers(m);
  add_models(m);
}

}  // namespace berth::python
