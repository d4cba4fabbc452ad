// Declarations of a graph text: ops, kernels, devices, functions. Each call
// reads the rest of one line. One thread.

#ifndef BERTH_GRAPH_PARSE_DECL_H_
#define BERTH_GRAPH_PARSE_DECL_H_

#include <memory>

#include "graph/graph_text.h"
#include "graph/text_line.h"

namespace berth {

// An output whose name ends so stands for any number of outputs.
inline constexpr std::string_view kRepeated = "...";

std::shared_ptr<const OpDef> parse_op(TextLine& line);
KernelDecl parse_kernel(TextLine& line);
DeviceDecl parse_device(TextLine& line);
// The result knows its specs; calling it throws errors::FailedPrecondition.
std::shared_ptr<Callable> parse_function(TextLine& line);

}  // namespace berth

#endif  // BERTH_GRAPH_PARSE_DECL_H_
