// values: what the conversions of values and of arguments share.

#ifndef BERTH_PYTHON_VALUES_H_
#define BERTH_PYTHON_VALUES_H_

#include <string>

#include "convert.h"

namespace berth::python {

nb::object& numpy();
std::string text_of(nb::handle h);
bool is_array(PyObject* o);  // what NumPy's protocols make an array of

}  // namespace berth::python

#endif  // BERTH_PYTHON_VALUES_H_
