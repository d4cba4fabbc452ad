// Ops where the tasks of a cluster meet: what a strategy's rewrite asks for,
// and what that is lowered to (collective/task_buckets.h).

#include "ops/families.h"

namespace berth {

namespace {

using TaskInts = std::vector<int64_t>;

int count_tasks_wanting(const OpDef& op, const Attrs* attrs) {
  return static_cast<int>(op.attr<TaskInts>(attrs, "replicas").size());
}

int count_task_items(const OpDef& op, const Attrs* attrs) {
  return static_cast<int>(op.attr<TaskInts>(attrs, "sizes").size());
}

void infer_meeting(InferContext& c) {
  for (int o = 0; o < c.num_outputs(); ++o) {
    c.set_output(o, c.attr<DType>("T"), c.attr<Shape>("shape"));
  }
}

void infer_task_token(InferContext& c) { c.set_output(0, int32, Shape()); }

void infer_task_items(InferContext& c) {
  const TaskInts& sizes = c.attr<TaskInts>("sizes");
  for (int o = 0; o < c.num_outputs(); ++o) {
    c.set_output(o, c.attr<DType>("T"), Shape{sizes[static_cast<size_t>(o)]});
  }
}

// Time on a link, not of the device.
Cost cost_on_link(const InferContext&) { return {}; }

// What all of them say: with whom, and where in the order of exchanges.
void add_task_link(OpBuilder& op) {
  op.required_attr("T", float32)
      // The tasks (distribute/multi_worker/gradient_exchange.h).
      .required_attr("link", int64_t{0})
      .attr("ranks", int64_t{1})
      .stateful()
      .not_differentiable();
}

// Where a meeting stands, in numbers that are the same in all tasks.
void add_task_place(OpBuilder& op) {
  op.required_attr("shape", Shape())
      // The replicas of this task that want the result.
      .required_attr("replicas", TaskInts())
      // In the order of the step as it was traced.
      .required_attr("number", int64_t{0})
      // Meetings that must have been before.
      .attr("level", int64_t{0})
      // Other meetings wait for it.
      .attr("feeds", false)
      // Those of other bases never travel with it.
      .attr("base", int64_t{0})
      .attr("pack_bytes", int64_t{0})
      // The device that has the host memory which is exchanged.
      .required_attr("device", std::string())
      .infer(&infer_meeting);
}

}  // namespace

void register_task_ops(OpRegistry& r) {
  {
    OpBuilder op = r.op("_TaskReduce");
    op.any_inputs("pieces", kEveryNumber)
        .output("result")
        .num_outputs(&count_tasks_wanting)
        .attr("reduction", std::string("sum"))
        // Pieces of all tasks: a mean divides by it.
        .attr("owners", int64_t{1})
        // Slices [starts[i], starts[i] + counts[i]) of `slices` that piece i
        // is the sum of; empty: no order is asked for.
        .attr("starts", TaskInts())
        .attr("counts", TaskInts())
        .attr("slices", int64_t{0})
        .doc("Replaced by _TaskStart and _TaskEnd (collective/).");
    add_task_link(op);
    add_task_place(op);
  }
  {
    OpBuilder op = r.op("_TaskGather");
    op.any_inputs("part", kEveryType)
        .output("whole")
        .num_outputs(&count_tasks_wanting)
        .required_attr("axis", int64_t{0})
        // How long the parts are along the axis, by rank.
        .required_attr("lengths", TaskInts())
        .doc("Replaced by _TaskStart and _TaskEnd (collective/).");
    add_task_link(op);
    add_task_place(op);
  }
  // An exchange goes on beside what is computed between the two. All tasks
  // make the same ones in the same order.
  {
    OpBuilder op = r.op("_TaskStart");
    op.any_inputs("values", kEveryType)
        .output("token")
        .required_attr("program", int64_t{0})
        .required_attr("number", int64_t{0})
        .attr("channel", int64_t{0})
        .attr("how", std::string("sum"))     // "ordered", "gather"
        .required_attr("sizes", TaskInts())  // of items, in elements
        .attr("starts", TaskInts())          // of pieces, each with all items
        .attr("counts", TaskInts())
        .attr("slices", int64_t{0})
        .attr("lengths", TaskInts())  // of a gather: elements by rank
        .attr("what", std::string())
        .attr("timeout_seconds", 0.0)
        .infer(&infer_task_token)
        .cost(&cost_on_link)
        .doc("Hands values to the exchange between tasks (collective/).");
    add_task_link(op);
  }
  {
    OpBuilder op = r.op("_TaskEnd");
    op.input("token", dtype_bit(int32))
        .output("items")
        .num_outputs(&count_task_items)
        .required_attr("program", int64_t{0})
        .required_attr("number", int64_t{0})
        .required_attr("sizes", TaskInts())
        .infer(&infer_task_items)
        .cost(&cost_on_link)
        .doc("Waits for what _TaskStart began (collective/).");
    add_task_link(op);
  }
}

}  // namespace berth
