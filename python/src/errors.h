// errors: the engine's errors as exceptions of Python (tf.errors).

#ifndef BERTH_PYTHON_ERRORS_H_
#define BERTH_PYTHON_ERRORS_H_

#include <nanobind/nanobind.h>

#include "berth/errors.h"

namespace berth::python {

// Makes the classes in `m`, InvalidArgumentError and its kin, and has nanobind
// translate what bound functions throw.
void add_errors(nanobind::module_& m);
void set_python_error(const errors::Error& e);

}  // namespace berth::python

#endif  // BERTH_PYTHON_ERRORS_H_
