// OpText: one op on given operands as a graph text, for a task that binds its
// kernel. Pure functions.

#ifndef BERTH_REMOTE_OP_TEXT_H_
#define BERTH_REMOTE_OP_TEXT_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "op/kernel.h"

namespace berth::remote {

struct OpText {
  std::string text;
  std::vector<Tensor> blobs;  // that the text refers to by hash
};

OpText op_text(const PrepareArgs& args);

// The tensors that the text of a graph, bodies included, names by hash; on the
// host.
std::vector<Tensor> blobs_of(const Graph& graph);

// Reads the text of one op; its node is the last. Throws
// errors::InvalidArgument.
Graph parse_op(const std::string& text);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_OP_TEXT_H_
