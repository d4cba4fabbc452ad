// callbacks: what fit, evaluate and predict call while they run.
//
// All hold the GIL; the callbacks take it when they are called.

#ifndef BERTH_PYTHON_CALLBACKS_H_
#define BERTH_PYTHON_CALLBACKS_H_

#include <nanobind/nanobind.h>

#include <vector>

#include "berth/keras.h"

namespace berth::python {

// Returns a dictionary.
nanobind::object logs_of(const keras::Logs& logs);
// Returns callbacks for objects of Python or of the engine, and the one that
// sees Ctrl-C.
std::vector<keras::Callback> callbacks_of(nanobind::handle list);

}  // namespace berth::python

#endif  // BERTH_PYTHON_CALLBACKS_H_
