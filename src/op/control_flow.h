// How the operands and results of "If" and "While" are laid out.
//
// If{then_branch, else_branch}: (cond, args..., handles...) -> results of the
// branch, which takes the args.
// While{cond, body, num_vars, num_rows, max_iterations, reverse}:
//   (count if there is no cond, vars..., rows..., captures..., handles...) ->
//   (vars..., count, stacks...)
// cond takes (vars, captures), body (vars, one row of each of rows, captures)
// and returns (vars, one row of each stack). Turn i takes row i and gives row
// i of the stacks [max_iterations, ...]; `reverse` takes the last turn first.
// Rows that no turn gives are zero. Handles are the variables that a body
// captured; they stand for order and place, and no body takes them.
// Pure functions.

#ifndef BERTH_OP_CONTROL_FLOW_H_
#define BERTH_OP_CONTROL_FLOW_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "op/attrs.h"
#include "op/callable.h"
#include "op/op_def.h"

namespace berth {

struct IfLayout {
  IfLayout(const OpDef& op, const Attrs* attrs);

  std::shared_ptr<Callable> then_branch, else_branch;
  int num_args = 0;
  int first_handle() const { return 1 + num_args; }
};

struct WhileLayout {
  WhileLayout(const OpDef& op, const Attrs* attrs);

  std::shared_ptr<Callable> cond, body;  // no cond: input 0 counts the turns
  int num_vars = 0, num_rows = 0, num_captures = 0, num_stacks = 0;
  int64_t max_iterations = -1;  // -1: as long as cond holds
  bool reverse = false;

  bool counted() const { return cond == nullptr; }
  int first_var() const { return counted() ? 1 : 0; }
  int first_row() const { return first_var() + num_vars; }
  int first_capture() const { return first_row() + num_rows; }
  int first_handle() const { return first_capture() + num_captures; }
  int count_output() const { return num_vars; }
  int first_stack() const { return num_vars + 1; }
};

// True for While, false for If.
bool is_loop(const OpDef& op);

// Which input of the node each input of a callee is; for rows, one row of it.
std::vector<int> callee_inputs(const OpDef& op, const Attrs* attrs,
                               const Callable& callee);

// Runs an If or While op by op through the dispatchers of the thread; defined
// in function/. Waits for the predicate at each turn.
void call_control(const OpDef& op, std::span<const Tensor* const> in,
                  const Attrs* attrs, std::span<Tensor> out);

// The attributes with which a tape records an If or While of a trace: further
// results, after the others, hold every value that a gradient may need.
// Empty: `attrs` will do. Defined in function/.
AttrsRef saving_attrs(const OpDef& op, const Attrs* attrs);

// Gradient rules; defined in function/.
class GradCall;
Tensors if_gradient(const GradCall& g);
Tensors while_gradient(const GradCall& g);

}  // namespace berth

#endif  // BERTH_OP_CONTROL_FLOW_H_
