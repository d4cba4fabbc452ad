// convert: values between Python and C++.
//
// From<T>::get(object, hint) gives a T, or throws NotThat with what was
// expected; `hint` is the dtype that plain numbers take where a tensor is made
// of them. to_python() gives a new reference. All hold the GIL.

#ifndef BERTH_PYTHON_CONVERT_H_
#define BERTH_PYTHON_CONVERT_H_

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/berth.h"
#include "berth/keras.h"
#include "gil.h"

BERTH_PYTHON_HANDLE(berth::data::Dataset, false)
BERTH_PYTHON_HANDLE(berth::ConcreteFunction, false)
BERTH_PYTHON_HANDLE(berth::distribute::DistributedDataset, false)
BERTH_PYTHON_HANDLE(berth::distribute::Strategy, false)
BERTH_PYTHON_HANDLE(berth::distribute::MultiWorkerMirroredStrategy, false)
BERTH_PYTHON_HANDLE(berth::keras::Layer, false)
BERTH_PYTHON_HANDLE(berth::keras::Model, false)
BERTH_PYTHON_HANDLE(berth::keras::Loss, false)
BERTH_PYTHON_HANDLE(berth::keras::Metric, false)
BERTH_PYTHON_HANDLE(berth::keras::Optimizer, false)

namespace berth::python {

namespace nb = nanobind;

struct NotThat : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An element type as Python has it: tf.float32.
struct PyDType {
  DType value;
};

// The iterator that a Pass of Python holds; null: it is none.
data::Iterator* iterator_of(nb::handle o);

// The line of the innermost frame that is not the package's own.
Site site_of_caller();

// What tape.watched_variables() says: the trainable variables that were read
// while a tape of this thread was open.
bool tape_is_open();
void note_read(const Variable& v);

// A tensor of a tensor, variable, number, array, or nested lists of those. `to`
// is the dtype of a tensor beside it, which values take that it can hold, or
// what the user asks for: then arrays are cast, and what is of another kind
// throws NotThat.
Tensor tensor_of(PyObject* o, DType to = DType::kInvalid, bool asked = false);
Tensors tensors_in(nb::handle list);  // of items that tensor_of takes
bool is_own(PyObject* o);             // Tensor or Variable
bool is_tensor_like(PyObject* o);     // those, or an array; not a list
DType dtype_of_python(PyObject* o);
// Returns the contracts that objects of berth.Contract describe.
placement::Contracts contracts_of(nb::handle list);
// What is read as numbers: the value of a tensor of a trace, where sizes and
// constants make it; any other tensor as it is.
Tensor known(const Tensor& t);
// A NumPy array with the values; waits for them.
nb::object array_of(const Tensor& t);

template <class T>
struct From {
  // A field that Python cannot set.
  static T get(PyObject*, DType) {
    throw NotThat("something that Python cannot give yet");
  }
};

#define BERTH_PYTHON_FROM(T)               \
  template <>                              \
  struct From<T> {                         \
    static T get(PyObject* o, DType hint); \
  }
BERTH_PYTHON_FROM(Tensor);
BERTH_PYTHON_FROM(Tensors);
BERTH_PYTHON_FROM(Shape);
BERTH_PYTHON_FROM(DType);
BERTH_PYTHON_FROM(std::string);
BERTH_PYTHON_FROM(double);
BERTH_PYTHON_FROM(bool);
BERTH_PYTHON_FROM(int64_t);
BERTH_PYTHON_FROM(uint64_t);
BERTH_PYTHON_FROM(math::Axes);
BERTH_PYTHON_FROM(Variable);
BERTH_PYTHON_FROM(random::StatelessSeed);
BERTH_PYTHON_FROM(keras::Initializer);
BERTH_PYTHON_FROM(keras::Regularizer);
BERTH_PYTHON_FROM(keras::Constraint);
BERTH_PYTHON_FROM(keras::DTypePolicy);
BERTH_PYTHON_FROM(keras::Optimizer);
BERTH_PYTHON_FROM(keras::LearningRateSchedule);
BERTH_PYTHON_FROM(keras::Layer);
BERTH_PYTHON_FROM(keras::RecurrentLayer);
BERTH_PYTHON_FROM(keras::Loss);
BERTH_PYTHON_FROM(keras::Metric);
BERTH_PYTHON_FROM(keras::KerasTensor);
BERTH_PYTHON_FROM(keras::DotAxes);
BERTH_PYTHON_FROM(keras::Size2D);
BERTH_PYTHON_FROM(keras::Size3D);
BERTH_PYTHON_FROM(keras::Margin);
BERTH_PYTHON_FROM(keras::Margins2D);
BERTH_PYTHON_FROM(keras::Margins3D);
BERTH_PYTHON_FROM(keras::Factor);
BERTH_PYTHON_FROM(image::Size);
BERTH_PYTHON_FROM(TensordotAxes);
BERTH_PYTHON_FROM(NormOrder);
BERTH_PYTHON_FROM(keras::LearningRate);
BERTH_PYTHON_FROM(keras::callbacks::UpdateFreq);
BERTH_PYTHON_FROM(keras::callbacks::ProfileBatch);
BERTH_PYTHON_FROM(keras::callbacks::SaveFreq);
#undef BERTH_PYTHON_FROM

template <>
struct From<float> {
  static float get(PyObject* o, DType h) {
    return static_cast<float>(From<double>::get(o, h));
  }
};
template <>
struct From<int> {
  static int get(PyObject* o, DType h) {
    return static_cast<int>(From<int64_t>::get(o, h));
  }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(PyObject* o, DType hint) {
    if (o == Py_None) return std::nullopt;
    return From<T>::get(o, hint);
  }
};

// The items of a list or tuple, or the one value.
std::vector<nb::object> items_of(PyObject* o);
bool is_list(PyObject* o);

template <class T>
struct From<std::vector<T>> {
  static std::vector<T> get(PyObject* o, DType hint) {
    std::vector<T> all;
    for (const nb::object& item : items_of(o)) {
      all.push_back(From<T>::get(item.ptr(), hint));
    }
    return all;
  }
};

inline nb::object to_python(bool v) { return nb::bool_(v); }
inline nb::object to_python(double v) { return nb::float_(v); }
inline nb::object to_python(int64_t v) { return nb::int_(v); }
inline nb::object to_python(const std::string& v) {
  return nb::str(v.c_str(), v.size());
}
nb::object to_python(const Tensor& t);  // None of an empty handle
nb::object to_python(const Tensors& t);
nb::object to_python(const Variable& v);
nb::object to_python(const std::vector<Variable>& v);
nb::object to_python(const Shape& s);
nb::object to_python(DType d);
nb::object to_python(const keras::Loss& x);
nb::object to_python(const keras::Metric& x);
nb::object to_python(const keras::Initializer& x);
nb::object to_python(const keras::Regularizer& x);
nb::object to_python(const keras::Constraint& x);
nb::object to_python(const keras::Optimizer& x);
nb::object to_python(const keras::LearningRateSchedule& x);
nb::object to_python(const keras::KerasTensor& x);
nb::object to_python(const keras::Layer& x);
nb::object to_python(const keras::Model& x);
nb::object to_python(const keras::Callback& x);
template <class A, class B>
nb::object to_python(const std::pair<A, B>& p) {
  return nb::make_tuple(to_python(p.first), to_python(p.second));
}
#include "results.inc"

}  // namespace berth::python

#endif  // BERTH_PYTHON_CONVERT_H_
