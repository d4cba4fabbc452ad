// The specs (shapes, dtypes) that a callable would return, found by tracing it.

#ifndef BERTH_FUNCTION_ABSTRACT_CALL_H_
#define BERTH_FUNCTION_ABSTRACT_CALL_H_

#include <functional>
#include <vector>

#include "berth/tensor.h"

namespace berth {

// Runs `fn` on symbolic tensors of these specs, isolated from the caller's
// tapes and traces, and returns the specs of its results; dimensions that
// depend on unknown ones are -1. Throws what `fn` throws.
std::vector<TensorSpec> abstract_call(
    const std::function<Tensors(const Tensors&)>& fn,
    const std::vector<TensorSpec>& args);

}  // namespace berth

#endif  // BERTH_FUNCTION_ABSTRACT_CALL_H_
