// sharing: memory that tensors share with arrays.

#ifndef BERTH_PYTHON_SHARING_H_
#define BERTH_PYTHON_SHARING_H_

#include "convert.h"

namespace berth::python {

// The buffer protocol, for the class Tensor.
PyType_Slot* buffer_slots();

// True when the memory of a NumPy array can be shared with a tensor: it is, and
// stays, read-only (over bytes, another tensor, or an array of JAX).
bool nobody_writes(nb::handle array);

}  // namespace berth::python

#endif  // BERTH_PYTHON_SHARING_H_
