// The text of a step that has not run.

#ifndef BERTH_FUNCTION_TRACED_TEXT_H_
#define BERTH_FUNCTION_TRACED_TEXT_H_

#include <string>

#include "function/trace_call.h"

namespace berth {

// Traces `fn` as trace_call() does; returns the text of the stage "trace" or
// "optimize".
std::string traced_text(const std::string& name,
                        const std::function<Tensors(const Tensors&)>& fn,
                        const std::vector<TensorSpec>& args,
                        const std::string& stage);

}  // namespace berth

#endif  // BERTH_FUNCTION_TRACED_TEXT_H_
