#include "convert.h"

#include <fmt/format.h>

#include <array>

#include "held.h"
#include "values.h"

namespace berth::python {

using namespace nanobind::literals;  // NOLINT

namespace {

// A Dataset or a RaggedTensor is iterable, but no list.
bool iterates_otherwise(PyObject* o) {
  return !PyLong_Check(o) && !is_list(o) && !is_own(o) &&
         !advice_of(o).kind.empty();
}

template <class T>
std::vector<T> list_of(PyObject* o, const char* what) {
  std::vector<T> all;
  if (iterates_otherwise(o)) throw NotThat(what);
  for (const nb::object& item : items_of(o)) {
    try {
      all.push_back(From<T>::get(item.ptr(), DType::kInvalid));
    } catch (const NotThat&) {
      throw NotThat(what);
    }
  }
  return all;
}

}  // namespace

bool is_list(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

std::vector<nb::object> items_of(PyObject* o) {
  if (nb::isinstance<Tensor>(o)) {
    const Tensor t = nb::cast<Tensor>(nb::handle(o));
    if (t.shape().rank() > 0 && t.dtype() != DType::kString) {  // numbers
      const nb::object list =
          to_python(known(t)).attr("numpy")().attr("tolist")();
      return items_of(list.ptr());
    }
  }
  if (PyUnicode_Check(o) || PyBytes_Check(o) || nb::isinstance<Tensor>(o) ||
      nb::isinstance<Variable>(o)) {
    return {nb::borrow(o)};
  }
  PyObject* iterator = PyObject_GetIter(o);
  if (iterator == nullptr) {
    PyErr_Clear();
    return {nb::borrow(o)};
  }
  nb::object held = nb::steal(iterator);
  std::vector<nb::object> all;
  while (PyObject* item = PyIter_Next(iterator)) all.push_back(nb::steal(item));
  if (PyErr_Occurred()) nb::raise_python_error();
  return all;
}

// "module.function", for files; empty for what has no such name: a lambda.
static std::string global_name(PyObject* function) {
  const nb::handle f(function);
  if (!nb::hasattr(f, "__qualname__")) return {};
  const std::string name = text_of(f.attr("__qualname__"));
  if (name.find('<') != std::string::npos) return {};
  const nb::object module = nb::getattr(f, "__module__", nb::none());
  return (module.is_none() ? "tf" : text_of(module)) + "." + name;
}

Tensor From<Tensor>::get(PyObject* o, DType hint) { return tensor_of(o, hint); }

Tensors From<Tensors>::get(PyObject* o, DType hint) {
  Tensors all;
  if (!is_list(o)) {
    if (!is_tensor_like(o)) throw NotThat("a list of tensors");
    return unstack(tensor_of(o, hint), 0, {});
  }
  const auto items = items_of(o);
  // A tensor says the dtype of the others, else the first value; but numbers
  // of Python that are whole stand beside others of its.
  for (const nb::object& item : items) {
    if (hint == DType::kInvalid && is_own(item.ptr())) {
      hint = dtype_of_python(item.ptr());
    }
  }
  if (hint == DType::kInvalid && !items.empty()) {
    hint = tensor_of(items[0].ptr()).dtype();
    for (const nb::object& item : items) {
      if (hint != int32 || is_array(items[0].ptr())) break;
      if (!is_array(item.ptr())) hint = tensor_of(item.ptr()).dtype();
    }
  }
  for (const nb::object& item : items) {
    all.push_back(tensor_of(item.ptr(), hint));
  }
  return all;
}

Shape From<Shape>::get(PyObject* o, DType) {
  std::vector<int64_t> dims;
  if (iterates_otherwise(o)) throw NotThat("a shape");
  if (is_own(o) || is_array(o)) {
    return Shape(known(tensor_of(o)).to_vector<int64_t>());
  }
  for (const nb::object& item : items_of(o)) {
    dims.push_back(item.is_none() ? kUnknownDim
                                  : From<int64_t>::get(item.ptr(), {}));
  }
  return Shape(dims);
}

DType From<DType>::get(PyObject* o, DType) {
  if (nb::isinstance<PyDType>(o)) return nb::cast<PyDType>(nb::handle(o)).value;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return float32;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return int32;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return bool_;
  std::string name;
  if (PyUnicode_Check(o)) {
    name = text_of(o);
  } else if (PyLong_Check(o) && !PyBool_Check(o)) {  // TensorFlow's number
    const nb::object known = nb::module_::import_("berth._tensor")
                                 .attr("_OTHER_NAMES")
                                 .attr("get")(nb::handle(o));
    if (known.is_none()) throw NotThat("a dtype");
    return nb::cast<PyDType>(known).value;
  } else {
    try {
      name = text_of(numpy().attr("dtype")(nb::handle(o)).attr("name"));
    } catch (nb::python_error&) {
      throw NotThat("a dtype");
    }
  }
  const DType d = dtype_from_name(name);
  if (d == DType::kInvalid) throw NotThat("a dtype that Berth has");
  return d;
}

std::string From<std::string>::get(PyObject* o, DType) {
  if (PyUnicode_Check(o)) return text_of(o);
  if (PyBytes_Check(o)) {
    return {PyBytes_AsString(o), static_cast<size_t>(PyBytes_Size(o))};
  }
  if (o == Py_None) return {};
  // A function that has a name among the engine's: activation=tf.nn.relu.
  if (PyCallable_Check(o) && nb::hasattr(nb::handle(o), "__name__")) {
    return text_of(nb::handle(o).attr("__name__"));
  }
  if (nb::hasattr(nb::handle(o), "__fspath__")) {
    return text_of(nb::handle(o).attr("__fspath__")());
  }
  throw NotThat("text");
}

double From<double>::get(PyObject* o, DType) {
  if (is_own(o)) return known(tensor_of(o)).item<double>({});
  const double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw NotThat("a number");
  }
  return v;
}

bool From<bool>::get(PyObject* o, DType) {
  if (is_own(o)) return known(tensor_of(o)).item<bool>({});
  const int v = PyObject_IsTrue(o);
  if (v < 0) nb::raise_python_error();
  return v != 0;
}

int64_t From<int64_t>::get(PyObject* o, DType) {
  if (is_own(o)) return known(tensor_of(o)).item<int64_t>({});
  nb::object whole = nb::steal(PyNumber_Index(o));
  if (!whole.is_valid()) {
    PyErr_Clear();
    if (PyFloat_Check(o) &&
        PyFloat_AsDouble(o) ==
            static_cast<double>(static_cast<int64_t>(PyFloat_AsDouble(o)))) {
      return static_cast<int64_t>(PyFloat_AsDouble(o));
    }
    throw NotThat("a whole number");
  }
  const int64_t v = PyLong_AsLongLong(whole.ptr());
  if (v == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw NotThat("a whole number of 64 bits");
  }
  return v;
}
uint64_t From<uint64_t>::get(PyObject* o, DType h) {
  return static_cast<uint64_t>(From<int64_t>::get(o, h));
}

math::Axes From<math::Axes>::get(PyObject* o, DType) {
  if (o == Py_None) return {};
  return math::Axes(list_of<int64_t>(o, "an axis or a list of axes"));
}

Variable From<Variable>::get(PyObject* o, DType) {
  if (nb::isinstance<Variable>(o))
    return nb::cast<const Variable&>(nb::handle(o));
  throw NotThat("a Variable");
}

random::StatelessSeed From<random::StatelessSeed>::get(PyObject* o, DType) {
  if (is_own(o)) {
    const Tensor pair = known(tensor_of(o));
    if (pair.is_symbolic()) return {.pair = pair};
  }
  const auto two = is_own(o) ? known(tensor_of(o)).to_vector<int64_t>({})
                             : list_of<int64_t>(o, "two whole numbers");
  if (two.size() != 2) throw NotThat("two whole numbers");
  return {two[0], two[1]};
}

// Handles of Keras, or the names that make one.
template <class T>
T handle_of(PyObject* o, const char* what) {
  if (nb::isinstance<T>(o)) return nb::cast<const T&>(nb::handle(o));
  if constexpr (std::is_constructible_v<T, std::string>) {
    if (PyUnicode_Check(o)) return T(text_of(o));
  }
  // Classes of keras hold the engine's handle, or make one of themselves.
  if (nb::hasattr(nb::handle(o), "__berth__")) {
    nb::object inner = nb::handle(o).attr("__berth__");
    if (PyType_Check(o)) inner = nb::handle(o)().attr("__berth__");
    if (PyCallable_Check(inner.ptr()) && !nb::isinstance<T>(inner)) {
      inner = inner();
    }
    if (nb::isinstance<T>(inner)) return nb::cast<const T&>(inner);
  }
  throw NotThat(what);
}

// A function of Python as one of the engine; its errors go on to the caller.
template <class... Tensors_>
std::function<Tensor(Tensors_...)> function_of(nb::object fn) {
  return [fn = held(std::move(fn))](Tensors_... in) {
    const Gil gil;
    return tensor_of((*fn)(to_python(in)...).ptr());
  };
}

keras::Initializer From<keras::Initializer>::get(PyObject* o, DType) {
  if (o == Py_None) throw NotThat("an initializer");
  try {
    return handle_of<keras::Initializer>(o, "an initializer or its name");
  } catch (const NotThat&) {
    if (!PyCallable_Check(o) || PyType_Check(o)) throw;
    // Keras' form, fn(shape, dtype=...): tf.random.normal is one, too.
    const keras::Initializer made(
        [fn = held(nb::borrow(o))](const Shape& s, DType d) {
          const Gil gil;
          return tensor_of((*fn)(to_python(s), "dtype"_a = to_python(d)).ptr());
        });
    const std::string name = global_name(o);
    if (name.empty()) return made;
    keras::register_custom_object(
        name, [made](const keras::Config&) { return made; });
    return keras::Initializer(name);
  }
}
keras::Regularizer From<keras::Regularizer>::get(PyObject* o, DType) {
  if (o == Py_None) return {};
  try {
    return handle_of<keras::Regularizer>(o, "a regularizer or its name");
  } catch (const NotThat&) {
    if (!PyCallable_Check(o) || PyType_Check(o)) throw;
    return keras::Regularizer(function_of<const Tensor&>(nb::borrow(o)));
  }
}
keras::Constraint From<keras::Constraint>::get(PyObject* o, DType) {
  if (o == Py_None) return {};
  return handle_of<keras::Constraint>(o, "a constraint or its name");
}
keras::DTypePolicy From<keras::DTypePolicy>::get(PyObject* o, DType) {
  if (PyUnicode_Check(o)) return keras::DTypePolicy(text_of(o));
  if (nb::isinstance<keras::DTypePolicy>(o)) {
    return nb::cast<const keras::DTypePolicy&>(nb::handle(o));
  }
  return keras::DTypePolicy(From<DType>::get(o, {}));
}
keras::Optimizer From<keras::Optimizer>::get(PyObject* o, DType) {
  return handle_of<keras::Optimizer>(o, "an optimizer or its name");
}
keras::LearningRateSchedule From<keras::LearningRateSchedule>::get(PyObject* o,
                                                                   DType) {
  return handle_of<keras::LearningRateSchedule>(o, "a schedule of rates");
}
keras::LearningRate From<keras::LearningRate>::get(PyObject* o, DType h) {
  if (PyFloat_Check(o) || PyLong_Check(o) || is_own(o)) {
    return {From<double>::get(o, h)};
  }
  return {From<keras::LearningRateSchedule>::get(o, h)};
}
keras::callbacks::UpdateFreq From<keras::callbacks::UpdateFreq>::get(
    PyObject* o, DType h) {
  if (PyUnicode_Check(o)) return {text_of(o).c_str()};
  return {From<int64_t>::get(o, h)};
}
keras::callbacks::ProfileBatch From<keras::callbacks::ProfileBatch>::get(
    PyObject* o, DType h) {
  if (PyLong_Check(o)) return {From<int64_t>::get(o, h)};
  std::vector<int64_t> range;
  if (PyUnicode_Check(o)) {  // "10,20"
    const std::string text = text_of(o);
    const size_t comma = text.find(',');
    range.push_back(std::atoll(text.c_str()));
    if (comma != text.npos) {
      range.push_back(std::atoll(text.c_str() + comma + 1));
    }
  } else {
    range = From<std::vector<int64_t>>::get(o, h);
  }
  if (range.size() == 1) return {range[0]};
  if (range.size() != 2) throw NotThat("a batch, or (first, last)");
  return {range[0], range[1]};
}
keras::callbacks::SaveFreq From<keras::callbacks::SaveFreq>::get(PyObject* o,
                                                                 DType h) {
  if (PyUnicode_Check(o)) return {text_of(o)};
  return {From<int64_t>::get(o, h)};
}
keras::Layer From<keras::Layer>::get(PyObject* o, DType) {
  return handle_of<keras::Layer>(o, "a layer");
}
keras::RecurrentLayer From<keras::RecurrentLayer>::get(PyObject* o, DType) {
  return keras::RecurrentLayer(
      handle_of<keras::Layer>(o, "a layer that goes over time").base());
}
keras::Loss From<keras::Loss>::get(PyObject* o, DType) {
  if (o == Py_None) return {};
  try {
    return handle_of<keras::Loss>(o, "a loss, its name, or a function");
  } catch (const NotThat&) {
    if (!PyCallable_Check(o) || PyType_Check(o)) throw;
    const nb::object fn = nb::borrow(o);
    const std::string name =
        nb::hasattr(fn, "__name__") ? text_of(fn.attr("__name__")) : "loss";
    if (PyCFunction_Check(o)) {  // the engine's own: keras.losses.MSE
      try {
        return keras::Loss(name);
      } catch (const errors::InvalidArgument&) {
      }
    }
    const keras::Loss made(name, function_of<const Tensor&, const Tensor&>(fn));
    const std::string known = global_name(o);
    if (known.empty()) return made;
    keras::register_custom_object(
        known, [made](const keras::Config&) { return made; });
    return keras::Loss(known);
  }
}
keras::Metric From<keras::Metric>::get(PyObject* o, DType) {
  return handle_of<keras::Metric>(o, "a metric or its name");
}
keras::KerasTensor From<keras::KerasTensor>::get(PyObject* o, DType) {
  if (nb::isinstance<keras::KerasTensor>(o)) {
    return nb::cast<const keras::KerasTensor&>(nb::handle(o));
  }
  throw NotThat("a value of a model, such as keras.Input() gives");
}

keras::DotAxes From<keras::DotAxes>::get(PyObject* o, DType) {
  const auto a = list_of<int64_t>(o, "an axis or two");
  if (a.size() == 1) return {a[0]};
  if (a.size() == 2) return {a[0], a[1]};
  throw NotThat("an axis or two");
}
keras::Size2D From<keras::Size2D>::get(PyObject* o, DType) {
  const auto a = list_of<int64_t>(o, "a whole number or two");
  if (a.size() == 1) return {a[0]};
  if (a.size() == 2) return {a[0], a[1]};
  throw NotThat("a whole number or two");
}
keras::Size3D From<keras::Size3D>::get(PyObject* o, DType) {
  const auto a = list_of<int64_t>(o, "a whole number or three");
  if (a.size() == 1) return {a[0]};
  if (a.size() == 3) return {a[0], a[1], a[2]};
  throw NotThat("a whole number or three");
}
keras::Margin From<keras::Margin>::get(PyObject* o, DType) {
  const auto a = list_of<int64_t>(o, "a whole number or two");
  if (a.size() == 1) return {a[0]};
  if (a.size() == 2) return {a[0], a[1]};
  throw NotThat("a whole number or two");
}
keras::Margins2D From<keras::Margins2D>::get(PyObject* o, DType h) {
  const auto items = items_of(o);
  if (!is_list(o)) return {From<int64_t>::get(o, h)};
  if (items.size() != 2) throw NotThat("a whole number or two margins");
  return {From<keras::Margin>::get(items[0].ptr(), h),
          From<keras::Margin>::get(items[1].ptr(), h)};
}
keras::Margins3D From<keras::Margins3D>::get(PyObject* o, DType h) {
  const auto items = items_of(o);
  if (!is_list(o)) return {From<int64_t>::get(o, h)};
  if (items.size() != 3) throw NotThat("a whole number or three margins");
  return {From<keras::Margin>::get(items[0].ptr(), h),
          From<keras::Margin>::get(items[1].ptr(), h),
          From<keras::Margin>::get(items[2].ptr(), h)};
}
keras::Factor From<keras::Factor>::get(PyObject* o, DType) {
  const auto a = list_of<double>(o, "a number or two");
  if (a.size() == 1) return {a[0]};
  if (a.size() == 2) return {a[0], a[1]};
  throw NotThat("a number or two");
}
image::Size From<image::Size>::get(PyObject* o, DType) {
  const auto a = list_of<int64_t>(o, "height and width");
  if (a.size() != 2) throw NotThat("height and width");
  return {a[0], a[1]};
}
TensordotAxes From<TensordotAxes>::get(PyObject* o, DType) {
  const auto items = items_of(o);
  if (items.size() == 1 && !is_list(o)) return {From<int64_t>::get(o, {})};
  if (items.size() != 2) throw NotThat("a number or two lists of axes");
  return {list_of<int64_t>(items[0].ptr(), "axes"),
          list_of<int64_t>(items[1].ptr(), "axes")};
}
NormOrder From<NormOrder>::get(PyObject* o, DType) {
  if (PyUnicode_Check(o)) {
    NormOrder order(2);
    order.name = text_of(o);
    return order;
  }
  return {From<double>::get(o, {})};
}

nb::object to_python(const Tensor& t) {
  if (!t.defined()) return nb::none();
  return nb::cast(t);
}
nb::object to_python(const Tensors& t) {
  nb::list all;
  for (const Tensor& x : t) all.append(to_python(x));
  return all;
}
nb::object to_python(const Variable& v) { return nb::cast(v); }
nb::object to_python(const std::vector<Variable>& v) {
  nb::list all;
  for (const Variable& x : v) all.append(nb::cast(x));
  return all;
}
nb::object to_python(const Shape& s) { return nb::cast(s); }
nb::object to_python(DType d) {
  // One object for each, which programs compare by `is`.
  static std::array<PyObject*, kNumDTypes> made = {};
  if (d == DType::kInvalid) return nb::cast(PyDType{d});
  PyObject*& o = made[static_cast<size_t>(d)];
  if (o == nullptr) {
    o = nb::object(nb::module_::import_("berth._core").attr(name_of(d)))
            .release()
            .ptr();
  }
  return nb::borrow(o);
}
nb::object to_python(const keras::Loss& x) { return nb::cast(x); }
nb::object to_python(const keras::Metric& x) { return nb::cast(x); }
nb::object to_python(const keras::Initializer& x) { return nb::cast(x); }
nb::object to_python(const keras::Regularizer& x) { return nb::cast(x); }
nb::object to_python(const keras::Constraint& x) { return nb::cast(x); }
nb::object to_python(const keras::Optimizer& x) { return nb::cast(x); }
nb::object to_python(const keras::LearningRateSchedule& x) {
  return nb::cast(x);
}
nb::object to_python(const keras::KerasTensor& x) { return nb::cast(x); }
nb::object to_python(const keras::Layer& x) { return nb::cast(x); }
nb::object to_python(const keras::Model& x) { return nb::cast(x); }
nb::object to_python(const keras::Callback& x) { return nb::cast(x); }

}  // namespace berth::python
