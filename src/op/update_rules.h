// The rules of ops that update variables (OpBuilder::update()): all that is not
// a scalar has the shape of the variables. Pure.

#ifndef BERTH_OP_UPDATE_RULES_H_
#define BERTH_OP_UPDATE_RULES_H_

#include <vector>

#include "op/op_def.h"

namespace berth {

void infer_update(InferContext& c);
// Along any axis; scalars are whole.
std::vector<SplitSignature> split_update(const InferContext& c);
// Reads the gradient, reads and writes each variable.
Cost cost_update(const InferContext& c);

}  // namespace berth

#endif  // BERTH_OP_UPDATE_RULES_H_
