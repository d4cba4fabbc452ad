// _Fused: a group of elementwise ops as one, made by the fuse pass.

#include "ops/families.h"
#include "ops/op_call.h"

namespace berth {

namespace {

using Names = std::vector<std::string>;

void infer_fused(InferContext& c) {
  infer_broadcast(c);
  const Shape shape = c.output(0).shape;
  const Names& types = c.attr<Names>("types");
  for (size_t i = 0; i < types.size(); ++i) {
    c.set_output(static_cast<int>(i), dtype_from_name(types[i]), shape);
  }
}

}  // namespace

void register_fused_op(OpRegistry& r) {
  r.op("_Fused")
      .free_variadic_input("inputs")
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        return static_cast<int>(op.attr<Names>(attrs, "types").size());
      })
      .required_attr("expr", std::string())
      .required_attr("types", Names())
      .attr("flops", 1.0)
      .infer(&infer_fused)
      .elementwise()
      .cost([](const InferContext& c) {
        Cost cost;
        const double n = static_cast<double>(c.output(0).shape.num_elements());
        cost.flops = n * c.attr<double>("flops");
        for (int i = 0; i < c.num_inputs(); ++i) {
          cost.bytes += static_cast<double>(c.shape(i).num_elements()) *
                        static_cast<double>(size_of(c.dtype(i)));
        }
        for (int i = 0; i < c.num_outputs(); ++i) {
          cost.bytes += n * static_cast<double>(size_of(c.output(i).dtype));
        }
        return cost;
      })
      .not_differentiable()
      .doc("The values of `expr` (see src/expr) over broadcast inputs.");
}

}  // namespace berth
