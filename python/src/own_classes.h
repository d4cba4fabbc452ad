// Own: layers, models and metrics whose methods are Python's. The object of
// Python holds the layer, which finds it through a weak reference.

#ifndef BERTH_PYTHON_OWN_CLASSES_H_
#define BERTH_PYTHON_OWN_CLASSES_H_

#include "base/needs_values.h"
#include "convert.h"
#include "held.h"
#include "keras/models/layer_state.h"

namespace berth::python {

inline keras::KerasTensors keras_tensors_in(nb::handle list) {
  keras::KerasTensors all;
  for (nb::handle t : list) {
    all.push_back(nb::cast<const keras::KerasTensor&>(t));
  }
  return all;
}

inline nb::list shapes_of(const std::vector<Shape>& shapes) {
  nb::list all;
  for (const Shape& s : shapes) all.append(to_python(s));
  return all;
}
// A weak reference to the object of Python.
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
inline thread_local bool t_outline = false;

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
    // What it calls is a part of it, by name. A model is not a part of names.
    if constexpr (std::is_same_v<Base, keras::LayerBase>) {
      keras::LayerCall::name_parts();
    }
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
T& own(const keras::Layer& layer) {
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
inline Tensor tensor_or_none(nb::handle o) {
  return o.is_none() ? Tensor() : tensor_of(o.ptr());
}

}  // namespace berth::python

#endif  // BERTH_PYTHON_OWN_CLASSES_H_
