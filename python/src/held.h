// held: objects of Python that the engine keeps and drops on any thread.

#ifndef BERTH_PYTHON_HELD_H_
#define BERTH_PYTHON_HELD_H_

#include <memory>

#include "gil.h"

namespace berth::python {

using Held = std::shared_ptr<nanobind::object>;

inline Held held(nanobind::object o) {
  return Held(new nanobind::object(std::move(o)), [](nanobind::object* p) {
    // What outlives the interpreter is left to the end of the process.
    if (const Gil gil{std::nothrow}) delete p;
  });
}

}  // namespace berth::python

#endif  // BERTH_PYTHON_HELD_H_
