// If and While: ops that run graphs. What they take and give stands in
// op/control_flow.h; their gradients, which need tracing, in function/.

#include "op/control_flow.h"

#include <fmt/format.h>

#include "ops/families.h"

namespace berth {

namespace {

std::string text_of(DType dtype, const Shape& shape) {
  return TensorSpec{shape, dtype, {}}.str();
}

// Fails unless `callee` takes what the node gives it, whole or by the row.
void check_callee(const InferContext& c, const Callable& callee,
                  const char* role, int first_row, int num_rows) {
  const auto inputs = callee_inputs(c.op(), c.attrs(), callee);
  const auto& specs = callee.input_specs();
  if (inputs.size() != specs.size() ||
      (!inputs.empty() && inputs.back() >= c.num_inputs())) {
    c.fail(fmt::format("{} takes {} values, but there are {} inputs", role,
                       specs.size(), c.num_inputs()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int in = inputs[i];
    Shape shape = c.shape(in);
    if (in >= first_row && in < first_row + num_rows) {
      if (shape.rank() == 0) {
        c.fail(fmt::format("input {} is a scalar; expected rows", in));
      }
      shape.erase(0);
    }
    if (c.dtype(in) != specs[i].dtype ||
        !shape.compatible_with(specs[i].shape)) {
      c.fail(fmt::format("{} is given {} for input {}; expected {}", role,
                         text_of(c.dtype(in), shape), i, specs[i].str()));
    }
  }
}

// Dimensions that both know; unknown where one does not.
Shape merge(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (int d = 0; d < shape.rank(); ++d) {
    if (a[d] != b[d]) shape[d] = kUnknownDim;
  }
  return shape;
}

void infer_if(InferContext& c) {
  const IfLayout l(c.op(), c.attrs());
  if (!l.then_branch || !l.else_branch) c.fail("a branch is missing");
  c.expect_rank(0, 0, "[]");
  check_callee(c, *l.then_branch, "the true branch", 0, 0);
  check_callee(c, *l.else_branch, "the false branch", 0, 0);
  const auto& a = l.then_branch->output_specs();
  const auto& b = l.else_branch->output_specs();
  if (a.size() != b.size()) {
    c.fail(
        fmt::format("the true branch returns {} tensors, the false one {}; "
                    "expected equally many",
                    a.size(), b.size()));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype || !a[i].shape.compatible_with(b[i].shape)) {
      c.fail(
          fmt::format("output {} is {} in the true branch and {} in the "
                      "false one; expected equal dtypes and shapes",
                      i, a[i].str(), b[i].str()));
    }
    c.set_output(static_cast<int>(i), a[i].dtype,
                 merge(a[i].shape, b[i].shape));
  }
}

void infer_while(InferContext& c) {
  const WhileLayout l(c.op(), c.attrs());
  if (!l.body) c.fail("the body is missing");
  if (l.num_vars < 0 || l.num_rows < 0 || l.num_captures < 0 ||
      l.num_stacks < 0 || l.first_handle() > c.num_inputs()) {
    c.fail(
        fmt::format("{} inputs do not fit {} loop variables, {} rows and "
                    "{} captured values",
                    c.num_inputs(), l.num_vars, l.num_rows, l.num_captures));
  }
  if (l.counted()) {
    c.expect_rank(0, 0, "[]");
    if (c.dtype(0) != int64) c.fail("the count of turns is not int64");
  } else {
    check_callee(c, *l.cond, "cond", 0, 0);
    const auto& out = l.cond->output_specs();
    if (out.size() != 1 || out[0].dtype != bool_ || out[0].shape.rank() != 0) {
      c.fail(fmt::format("cond returns {}; expected one bool[]",
                         out.empty() ? "nothing" : out[0].str()));
    }
  }
  check_callee(c, *l.body, "body", l.first_row(), l.num_rows);
  const auto& out = l.body->output_specs();
  for (int i = 0; i < l.num_vars; ++i) {
    const int in = l.first_var() + i;
    if (out[i].dtype != c.dtype(in) ||
        !out[i].shape.compatible_with(c.shape(in))) {
      c.fail(
          fmt::format("loop variable {} enters as {} and is {} after a "
                      "turn; expected the same dtype and shape",
                      i, text_of(c.dtype(in), c.shape(in)), out[i].str()));
    }
    c.set_output(i, out[i].dtype, merge(out[i].shape, c.shape(in)));
  }
  c.set_output(l.count_output(), int64, Shape{});
  if (l.num_stacks > 0 && l.max_iterations < 0) {
    c.fail("stacked results without max_iterations");
  }
  for (int i = 0; i < l.num_stacks; ++i) {
    const TensorSpec& row = out[l.num_vars + i];
    Shape shape = row.shape;
    shape.insert(0, l.max_iterations);
    c.set_output(l.first_stack() + i, row.dtype, shape);
  }
}

}  // namespace

void register_control_flow_ops(OpRegistry& r) {
  r.op("If")
      .free_input("cond", kBoolType)
      .any_inputs("args", kEveryType | kResourceType)
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        const IfLayout l(op, attrs);
        return l.then_branch
                   ? static_cast<int>(l.then_branch->output_specs().size())
                   : 0;
      })
      .required_attr("then_branch", std::shared_ptr<Callable>())
      .required_attr("else_branch", std::shared_ptr<Callable>())
      .attr("saving", false)
      .kind(OpKind::kControl)
      .infer(&infer_if)
      .gradient(&if_gradient)
      .doc("Runs one of two graphs (tf.cond).");
  r.op("While")
      .any_inputs("args", kEveryType | kResourceType)
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        const WhileLayout l(op, attrs);
        return l.num_vars + 1 + l.num_stacks;
      })
      .attr("cond", std::shared_ptr<Callable>())
      .required_attr("body", std::shared_ptr<Callable>())
      .required_attr("num_vars", int64_t{0})
      .attr("num_rows", int64_t{0})
      .attr("max_iterations", int64_t{-1})
      .attr("reverse", false)
      .attr("saving", false)
      .kind(OpKind::kControl)
      .infer(&infer_while)
      .gradient(&while_gradient)
      .doc("Runs a graph as long as another says so (tf.while_loop).");
}

}  // namespace berth
