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

// Throws what Python code raised as an error of the engine, with `code` where
// its class says no other. KeyboardInterrupt, SystemExit and their kind come
// out of the engine as they were. Holds the GIL.
[[noreturn]] void raise_in_engine(nanobind::python_error& e, errors::Code code);

// True for an error of the engine with that code. Holds the GIL.
bool is_error(const nanobind::python_error& e, errors::Code code);

}  // namespace berth::python

#endif  // BERTH_PYTHON_ERRORS_H_
