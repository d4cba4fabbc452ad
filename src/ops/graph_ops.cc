// Ops that exist only inside graphs: arguments, constants, variable handles,
// transfers; and the call of a function.

#include <fmt/format.h>

#include "op/callable.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

Callable& callee(const OpDef& op, const Attrs* attrs) {
  return *op.attr<std::shared_ptr<Callable>>(attrs, "f");
}

Tensors gradient_of_callee(const GradCall& g) {
  Tensors in, out, grads;
  std::vector<bool> needed;
  Callable& f = callee(g.op(), g.attrs());
  for (int i = 0; i < g.num_inputs(); ++i) {
    in.push_back(g.x(i));
    needed.push_back(g.needs(i));
  }
  for (size_t i = 0; i < f.output_specs().size(); ++i) {
    const int o = static_cast<int>(i);
    out.push_back(g.y(o));
    grads.push_back(g.has_dy(o) ? g.dy(o) : Tensor());
  }
  return f.gradient(in, out, grads, needed);
}

void check_range(InferContext& c, int64_t length, const char* what) {
  const auto begin = c.attr<int64_t>("begin"), count = c.attr<int64_t>("count");
  if (begin >= 0 && count >= 0 && (length < 0 || begin + count <= length)) {
    return;
  }
  c.fail(fmt::format("{} [{}, {}) of {}; expected a range within", what, begin,
                     begin + count, length));
}

void infer_rows(InferContext& c) {
  if (c.shape(0).rank() == 0) c.fail("input is a scalar; expected an axis");
  check_range(c, c.shape(0)[0], "examples");
  Shape out = c.shape(0);
  out[0] = c.attr<int64_t>("count");
  c.set_output(0, c.dtype(0), out);
}

void infer_variable_range(InferContext& c) {
  check_range(c, c.shape(0).num_elements(), "elements");
  c.set_variable_output(0, c.variable_dtype(0),
                        Shape{c.attr<int64_t>("count")});
}

// The pieces of all replicas, combined, for each replica that wants it.
void infer_all_reduce(InferContext& c) {
  const auto& owners = c.attr<std::vector<int64_t>>("owners");
  if (static_cast<int>(owners.size()) != c.num_inputs()) {
    c.fail(fmt::format("{} pieces, {} owners; expected one owner per piece",
                       c.num_inputs(), owners.size()));
  }
  Shape shape = c.shape(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.shape(i).compatible_with(shape)) {
      c.fail(fmt::format("piece {} is {}, piece 0 {}; expected equal shapes", i,
                         c.shape(i).str(), shape.str()));
    }
  }
  for (int o = 0; o < c.num_outputs(); ++o) c.set_output(o, c.dtype(0), shape);
}

int count_replicas(const OpDef& op, const Attrs* attrs) {
  return static_cast<int>(
      op.attr<std::vector<int64_t>>(attrs, "replicas").size());
}

// Each piece counts in every result: its gradient is the reduction of theirs,
// given to the owner of the piece.
Tensors grad_all_reduce(const GradCall& g) {
  auto pairs = g.attrs()->pairs();
  const auto owners = g.attr<std::vector<int64_t>>("owners");
  const auto replicas = g.attr<std::vector<int64_t>>("replicas");
  Tensors dys;
  std::vector<int64_t> have;
  for (size_t o = 0; o < replicas.size(); ++o) {
    if (!g.has_dy(static_cast<int>(o))) continue;
    dys.push_back(g.dy(static_cast<int>(o)));
    have.push_back(replicas[o]);
  }
  const bool mean = g.attr<std::string>("reduction") == "mean";
  for (auto& [name, value] : pairs) {
    if (name == "owners") value = have;
    if (name == "replicas") value = owners;
    if (name == "reduction") value = std::string("sum");
    if (name == "starts") value = std::vector<int64_t>();
  }
  Tensors grads =
      call_list(op_of<"_AllReduce">(), dys, AttrsRef(std::move(pairs)).get());
  if (!mean) return grads;
  for (Tensor& t : grads) {
    t = call1(op_of<"Mul">(), t,
              scalar_like(t, 1.0 / static_cast<double>(owners.size())));
  }
  return grads;
}

// What goes over links has a price of its own (place/costs.h).
Cost cost_all_reduce_part(const InferContext&) { return {}; }

int count_met(const OpDef& op, const Attrs* attrs) {
  const auto& f = op.attr<std::shared_ptr<Callable>>(attrs, "f");
  return f ? static_cast<int>(f->output_specs().size()) : 1;
}

void infer_met(InferContext& c) {
  const auto& f = c.attr<std::shared_ptr<Callable>>("f");
  const auto& what = c.attr<std::string>("what");
  if (f) {
    for (int o = 0; o < c.num_outputs(); ++o) {
      const TensorSpec& s = f->output_specs()[static_cast<size_t>(o)];
      Shape shape = s.shape;  // its symbols are of another trace
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape[d] < 0) shape[d] = kUnknownDim;
      }
      c.set_output(o, s.dtype, shape);
    }
    return;
  }
  Shape shape = c.shape(c.num_inputs() - 1);
  if (what == "all_gather") shape[c.attr<int64_t>("axis")] = kUnknownDim;
  c.set_output(0, c.dtype(0), shape);
}

Tensors grad_met(const GradCall& g) {
  static const OpDef& op = op_named("_CrossReplica");
  const auto what = g.attr<std::string>("what");
  if (what == "all_reduce") return {call1(op, g.dy(), g.attrs())};
  if (what == "all_gather") {
    const AttrsRef attrs({{"what", std::string("all_gather_grad")},
                          {"axis", g.attr<int64_t>("axis")}});
    return {call1(op, g.dy(), g.x(0), attrs.get())};
  }
  return {};
}

void register_collective_ops(OpRegistry& r) {
  // In the trace of one replica: here it meets the others.
  r.op("_CrossReplica")
      .any_inputs("values", kAnyType)
      .num_outputs(&count_met)
      // "all_reduce", "all_gather", "all_gather_grad" (of what was gathered,
      // and this replica's part of it), "first" (what the first replica has)
      // or "call" (of f, with the values of all replicas).
      .required_attr("what", std::string())
      .attr("reduction", std::string("sum"))
      .attr("axis", int64_t{0})
      .attr("f", std::shared_ptr<Callable>())
      .infer(&infer_met)
      .kind(OpKind::kCrossReplica)
      .gradient(&grad_met)
      .doc("Replaced when the traces of replicas become one (distribute/).");
  r.op("_AllReduce")
      .variadic_input("pieces", kEveryNumber)
      .output("result")
      .num_outputs(&count_replicas)
      // "sum" or "mean" (the sum divided by the number of owners).
      .attr("reduction", std::string("sum"))
      // The replica that has each piece.
      .required_attr("owners", std::vector<int64_t>())
      // The replica that wants each result.
      .required_attr("replicas", std::vector<int64_t>())
      // The slice at which each piece begins: pieces are added along the tree
      // over slices, so that bits do not depend on the owners. Empty: no
      // order is asked for.
      .attr("starts", std::vector<int64_t>())
      // "auto", "nccl", "direct", "ring", "hierarchical", "one_device".
      .attr("algorithm", std::string("auto"))
      // Results of up to so many bytes travel together; 0: the default.
      .attr("pack_bytes", int64_t{0})
      .infer(&infer_all_reduce)
      .gradient(&grad_all_reduce)
      .doc("Replaced by additions and copies before placement (collective/).");
  // A sum between devices by a library of theirs, in two parts: it goes on
  // beside what a device computes between them. All Starts of a group run
  // before an End of it does. Nobody but the End may read what a Start gives.
  for (const char* part : {"_AllReduceStart", "_AllReduceEnd"}) {
    r.op(part)
        .input("input", kEveryNumber)
        .output("output")
        // Which sum of the process it is a part of.
        .required_attr("group", int64_t{0})
        .required_attr("rank", int64_t{0})
        .required_attr("ranks", int64_t{0})
        // For errors.
        .attr("what", std::string())
        // How long the step may take; 0: the library's own limit.
        .attr("timeout_seconds", 0.0)
        .infer(&infer_same_as_0)
        .cost(&cost_all_reduce_part)
        .stateful()
        .not_differentiable()
        .doc("Made of _AllReduce where devices share a library (collective/).");
  }
}

// An edge between processes: both ends name it by number. Made where a step is
// cut by tasks (remote/).
void register_task_edges(OpRegistry& r) {
  r.op("_TaskSend")
      .input("input")
      .required_attr("link", int64_t{0})
      .required_attr("edge", int64_t{0})
      .required_attr("task", std::string())  // that gets it
      .infer([](InferContext&) {})
      .stateful()
      .not_differentiable()
      .doc("Made where a step is split over tasks (remote/).");
  r.op("_TaskRecv")
      .output("output")
      .required_attr("link", int64_t{0})
      .required_attr("edge", int64_t{0})
      .required_attr("task", std::string())  // that sends it
      .required_attr("dtype", float32)
      .required_attr("shape", Shape{})
      .infer([](InferContext& c) {
        c.set_output(0, c.attr<DType>("dtype"), c.attr<Shape>("shape"));
      })
      .stateful()
      .not_differentiable()
      .doc("Made where a step is split over tasks (remote/).");
}

}  // namespace

void register_graph_ops(OpRegistry& r) {
  register_task_edges(r);
  r.op("_Arg")
      .output("output")
      .required_attr("index", int64_t{0})
      .required_attr("dtype", float32)
      .required_attr("shape", Shape{})
      .kind(OpKind::kArgument)
      .infer([](InferContext& c) {
        c.set_output(0, c.attr<DType>("dtype"), c.attr<Shape>("shape"));
      })
      .not_differentiable();
  r.op("Const")
      .output("output")
      .required_attr("value", Tensor{})
      .kind(OpKind::kConstant)
      .infer([](InferContext& c) {
        const Tensor& value = c.attr<Tensor>("value");
        c.set_output(0, value.dtype(), value.shape());
      })
      .not_differentiable();
  r.op("VarHandleOp")
      .output("resource")
      .required_attr("shared_name", std::string())
      .required_attr("dtype", float32)
      .required_attr("shape", Shape{})
      .kind(OpKind::kHandle)
      .infer([](InferContext& c) {
        c.set_variable_output(0, c.attr<DType>("dtype"),
                              c.attr<Shape>("shape"));
      })
      .not_differentiable();
  // One value on its way to another device; inserted by the partitioner.
  r.op("_Transfer")
      .input("input")
      .output("output")
      .kind(OpKind::kTransfer)
      .infer(&infer_same_as_0)
      .not_differentiable();
  // A value that another device of the same memory reads where it is;
  // inserted by the partitioner.
  r.op("_HandOver")
      .input("input")
      .output("output")
      .kind(OpKind::kAlias)
      .infer(&infer_same_as_0)
      .not_differentiable();
  // Examples [begin, begin + count) of the first axis, where they are.
  r.op("_Rows")
      .input("input")
      .output("output")
      .required_attr("begin", int64_t{0})
      .required_attr("count", int64_t{0})
      .kind(OpKind::kAlias)
      .infer(&infer_rows)
      .not_differentiable();
  // Elements [begin, begin + count) of a variable, in row-major order, as a
  // variable [count]. Any device of the same memory may compute with it.
  r.op("_VariableRange")
      .reads_variable("resource")
      .output("range")
      .required_attr("begin", int64_t{0})
      .required_attr("count", int64_t{0})
      .kind(OpKind::kHandleRange)
      .infer(&infer_variable_range)
      .not_differentiable();
  register_collective_ops(r);
  r.op("PartitionedCall")
      .any_inputs("args", kAnyType)
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        return static_cast<int>(callee(op, attrs).output_specs().size());
      })
      .required_attr("f", std::shared_ptr<Callable>())
      .kind(OpKind::kCall)
      .infer([](InferContext& c) {
        const auto& specs = callee(c.op(), c.attrs()).output_specs();
        for (size_t i = 0; i < specs.size(); ++i) {
          c.set_output(static_cast<int>(i), specs[i].dtype, specs[i].shape);
        }
      })
      .gradient(&gradient_of_callee);
  // The first inputs, one per output, with the gradient of "f" for the others
  // (custom_gradient).
  r.op("_OwnGradient")
      .any_inputs("values", kAnyType)
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        return static_cast<int>(callee(op, attrs).output_specs().size());
      })
      .required_attr("f", std::shared_ptr<Callable>())
      .infer([](InferContext& c) {
        for (int i = 0; i < c.num_outputs(); ++i) {
          c.set_output(i, c.dtype(i), c.shape(i));
        }
      })
      .decompose([](std::span<const Tensor> in, const OpDef& op,
                    const Attrs* attrs) {
        Tensors same;
        for (size_t i = 0; i < callee(op, attrs).output_specs().size(); ++i) {
          same.push_back(call1(op_of<"Identity">(), in[i]));
        }
        return same;
      })
      .gradient(&gradient_of_callee);
}

}  // namespace berth
