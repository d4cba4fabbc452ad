// arguments: takes a call from Python apart, and gives its result back.
//
// Generated routines (generate.py) name the arguments of their function once;
// bind() puts what the caller gave into that order. All of it holds the GIL,
// but run(), which lets it go while the engine works.

#ifndef BERTH_PYTHON_ARGUMENTS_H_
#define BERTH_PYTHON_ARGUMENTS_H_

#include <nanobind/nanobind.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "convert.h"

namespace berth::python {

// An argument: TensorFlow's name and the one in the header.
struct Name {
  const char* tensorflow;
  const char* own;
};

// Thrown by a routine whose arguments do not fit: the next overload has a try.
struct NoMatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Arguments {
 public:
  Arguments(const char* function, PyObject* const* args, size_t given,
            PyObject* names)
      : function_(function), args_(args), given_(given), names_(names) {}

  template <size_t N>
  void bind(const Name (&names)[N], size_t count) {
    bind(names, count);
  }
  void bind(const Name* names, size_t count);

  // The argument at `slot`, converted. Throws NoMatch when it is missing or of
  // another kind.
  template <class T>
  T get(size_t slot) const {
    if (slots_[slot] == nullptr) missing(slot);
    return converted<T>(slot);
  }
  template <class T>
  T get_or(size_t slot, T otherwise) const {
    if (slots_[slot] == nullptr) return otherwise;
    return converted<T>(slot);
  }
  // Sets a field of options when the caller gave it.
  template <class T>
  void set(size_t slot, T& field) const {
    if (slots_[slot] != nullptr) field = converted<T>(slot);
  }

  // As it was given. Throws NoMatch when it was not.
  nb::object needed(size_t slot) const {
    if (slots_[slot] == nullptr) missing(slot);
    return nb::borrow(slots_[slot]);
  }
  // None where it was not given.
  nb::handle object(size_t slot) const {
    return slots_[slot] == nullptr ? Py_None : slots_[slot];
  }

  Site site() const { return site_of_caller(); }

  // Runs the engine without the GIL.
  template <class Fn>
  PyObject* run(const Fn& fn) const {
    if constexpr (std::is_void_v<decltype(fn())>) {
      const Free free;
      fn();
    } else {
      auto result = [&] {
        const Free free;
        return fn();
      }();
      return to_python(std::move(result)).release().ptr();
    }
    Py_RETURN_NONE;
  }

 private:
  template <class T>
  T converted(size_t slot) const {
    try {
      return From<T>::get(slots_[slot], hint(slot));
    } catch (const NotThat& e) {
      throw NoMatch(describe(slot, e.what()));
    }
  }
  // The dtype that numbers without one take: that of the tensors beside them.
  DType hint(size_t slot) const;
  [[noreturn]] void missing(size_t slot) const;
  std::string describe(size_t slot, const char* why) const;

  static constexpr size_t kMost = 48;
  const char* const function_;
  PyObject* const* const args_;
  const size_t given_;
  PyObject* const names_;  // a tuple, or null
  const Name* bound_ = nullptr;
  size_t count_ = 0;
  PyObject* slots_[kMost] = {};
};

using Routine = PyObject* (*)(Arguments&);

// Gives a class the constructor make(memory, arguments), which speaks Python of
// arguments that do not fit.
template <class T, class Class, class Make>
void construct(Class& c, const char* name, Make make) {
  c.def("__init__", [=](T* self, nb::args args, nb::kwargs named) {
    std::vector<PyObject*> values;
    for (nb::handle v : args) values.push_back(v.ptr());
    for (nb::handle v : named.values()) values.push_back(v.ptr());
    const nb::object names =
        nb::steal(PySequence_Tuple(nb::object(named.keys()).ptr()));
    Arguments a(name, values.data(), args.size(), names.ptr());
    try {
      make(self, a);
    } catch (const NoMatch& e) {
      throw nb::type_error(e.what());
    }
  });
}

// A function of a module with its overloads.
struct Bound {
  std::string path;  // "math.reduce_sum"
  std::string doc;
  std::vector<Routine> routines;
};
// Makes "math.reduce_sum" of `root` for all that the headers declare.
void add_functions(nanobind::module_& root);

}  // namespace berth::python

#endif  // BERTH_PYTHON_ARGUMENTS_H_
