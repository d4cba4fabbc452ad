// Ops that exist only inside graphs: arguments, constants, variable handles,
// transfers; and the call of a function.

#include "op/callable.h"
#include "ops/families.h"
#include "ops/op_call.h"

namespace berth {

namespace {

Callable& callee(const OpDef& op, const Attrs* attrs) {
  return *op.attr<std::shared_ptr<Callable>>(attrs, "f");
}

}  // namespace

void register_graph_ops(OpRegistry& r) {
  r.op("_Arg")
      .output("output")
      .required_attr("index", int64_t{0})
      .required_attr("dtype", float32)
      .required_attr("shape", Shape{})
      .kind(OpKind::kPlaceholder)
      .infer([](InferContext& c) {
        c.set_output(0, c.attr<DType>("dtype"), c.attr<Shape>("shape"));
      })
      .not_differentiable();
  r.op("Const")
      .output("output")
      .required_attr("value", Tensor{})
      .kind(OpKind::kPlaceholder)
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
      .kind(OpKind::kPlaceholder)
      .infer([](InferContext& c) {
        c.set_variable_output(0, c.attr<DType>("dtype"),
                              c.attr<Shape>("shape"));
      })
      .not_differentiable();
  // One value on its way to another device; inserted by the partitioner.
  r.op("_Transfer")
      .input("input")
      .output("output")
      .kind(OpKind::kPlaceholder)
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
      .gradient([](const GradCall& g) {
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
      });
}

}  // namespace berth
