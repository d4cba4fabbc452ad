// without_branches: writes that a condition guards, as plain writes.
//
// The graph gets the nodes of both branches of an If; after each write, the
// variable gets back what it had unless that branch is the chosen one. So each
// write can stand where its variable is. One thread.

#ifndef BERTH_FUNCTION_WITHOUT_BRANCHES_H_
#define BERTH_FUNCTION_WITHOUT_BRANCHES_H_

#include <functional>

#include "graph/graph.h"

namespace berth {

// Whether the op assigns a value to a variable, or adds or subtracts it.
bool is_plain_assign(const OpDef& op);

// Rewrites each If that writes variables and that `wanted` names. Leaves those
// with other effects, and with loops that write: they must not run in vain.
void without_branches(Graph& graph,
                      const std::function<bool(const Node&)>& wanted);

}  // namespace berth

#endif  // BERTH_FUNCTION_WITHOUT_BRANCHES_H_
