#include "op/control_flow.h"

#include "op/op_registry.h"

namespace berth {

namespace {

std::shared_ptr<Callable> callee(const OpDef& op, const Attrs* attrs,
                                 std::string_view name) {
  return op.attr<std::shared_ptr<Callable>>(attrs, name);
}

}  // namespace

IfLayout::IfLayout(const OpDef& op, const Attrs* attrs)
    : then_branch(callee(op, attrs, "then_branch")),
      else_branch(callee(op, attrs, "else_branch")),
      num_args(then_branch ? static_cast<int>(then_branch->input_specs().size())
                           : 0) {}

WhileLayout::WhileLayout(const OpDef& op, const Attrs* attrs)
    : cond(callee(op, attrs, "cond")),
      body(callee(op, attrs, "body")),
      num_vars(static_cast<int>(op.attr<int64_t>(attrs, "num_vars"))),
      num_rows(static_cast<int>(op.attr<int64_t>(attrs, "num_rows"))),
      max_iterations(op.attr<int64_t>(attrs, "max_iterations")),
      reverse(op.attr<bool>(attrs, "reverse")) {
  if (!body) return;
  num_captures =
      static_cast<int>(body->input_specs().size()) - num_vars - num_rows;
  num_stacks = static_cast<int>(body->output_specs().size()) - num_vars;
}

bool is_loop(const OpDef& op) {
  static const OpDef& loop = op_named("While");
  return &op == &loop;
}

std::vector<int> callee_inputs(const OpDef& op, const Attrs* attrs,
                               const Callable& callee) {
  std::vector<int> inputs;
  auto add = [&](int first, int n) {
    for (int i = 0; i < n; ++i) inputs.push_back(first + i);
  };
  if (!is_loop(op)) {
    add(1, static_cast<int>(callee.input_specs().size()));
    return inputs;
  }
  const WhileLayout w(op, attrs);
  add(w.first_var(), w.num_vars);
  if (&callee == w.body.get()) add(w.first_row(), w.num_rows);
  add(w.first_capture(), w.num_captures);
  return inputs;
}

}  // namespace berth
