// values: what the conversions of values and of arguments share.

#ifndef BERTH_PYTHON_VALUES_H_
#define BERTH_PYTHON_VALUES_H_

#include <string>

#include "convert.h"

namespace berth::python {

nb::object& numpy();
std::string text_of(nb::handle h);
bool is_array(PyObject* o);  // what NumPy's protocols make an array of
// What a value that is not a tensor, or the first such in a list, says of
// itself: its class, and how a tensor is made of it; both empty of others.
struct Advice {
  std::string kind, text;
};
Advice advice_of(PyObject* o);

}  // namespace berth::python

#endif  // BERTH_PYTHON_VALUES_H_
