// Traces a callable into a graph without running it.

#ifndef BERTH_FUNCTION_TRACE_CALL_H_
#define BERTH_FUNCTION_TRACE_CALL_H_

#include <functional>
#include <string>
#include <vector>

#include "berth/tensor.h"
#include "graph/graph.h"

namespace berth {

// Runs `fn` on symbolic tensors of these specs, isolated from the caller's
// tapes, contracts and traces. Throws what `fn` throws.
Graph trace_call(const std::string& name,
                 const std::function<Tensors(const Tensors&)>& fn,
                 const std::vector<TensorSpec>& args);

}  // namespace berth

#endif  // BERTH_FUNCTION_TRACE_CALL_H_
