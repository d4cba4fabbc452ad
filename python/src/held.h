// held: objects of Python that the engine keeps and drops on any thread.

#ifndef BERTH_PYTHON_HELD_H_
#define BERTH_PYTHON_HELD_H_

#include <nanobind/nanobind.h>

#include <memory>

namespace berth::python {

using Held = std::shared_ptr<nanobind::object>;

inline Held held(nanobind::object o) {
  return Held(new nanobind::object(std::move(o)), [](nanobind::object* p) {
    // What outlives the interpreter is left to the end of the process.
    if (!Py_IsInitialized()) return;
    nanobind::gil_scoped_acquire gil;
    delete p;
  });
}

}  // namespace berth::python

#endif  // BERTH_PYTHON_HELD_H_
