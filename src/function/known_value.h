// What a trace knows of a value: sizes, and what is computed from them and
// from constants, are numbers before anything runs.

#ifndef BERTH_FUNCTION_KNOWN_VALUE_H_
#define BERTH_FUNCTION_KNOWN_VALUE_H_

#include "berth/tensor.h"

namespace berth {

// Returns `t` where it has values. For a value of the open traces that follows
// from shapes and constants and is small, returns the tensor that it will be,
// on the host; for others, returns an empty tensor.
Tensor known_value(const Tensor& t);

}  // namespace berth

#endif  // BERTH_FUNCTION_KNOWN_VALUE_H_
