// _Fused: a group of elementwise ops as one, made by the fuse pass.
// _FusedMatMul: a product and the ops at its ends, made by fuse_products.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
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

bool is_flat(const InferContext& c) { return c.attr<bool>("flat"); }

void infer_fused_matmul(InferContext& c) {
  if (!is_flat(c)) {
    op_named("MatMul").infer()(c);
  } else {
    const Shape &a = c.shape(0), &b = c.shape(1);
    c.set_output(0, c.dtype(0), {a[a.rank() - 1], b[b.rank() - 1]});
  }
  const Shape product = c.output(0).shape;
  int next = 1;
  if (c.attr<bool>("keep")) c.set_output(next++, c.dtype(0), product);
  if (c.attr<bool>("bias_grad")) {
    c.set_output(next, c.dtype(0), {product[product.rank() - 1]});
  }
}

Cost cost_fused_matmul(const InferContext& c) {
  const Shape& a = c.shape(0);
  const int rank = a.rank();
  const auto elements = [](const Shape& s) {
    return static_cast<double>(s.num_elements());
  };
  auto inner =
      static_cast<double>(a[c.attr<bool>("transpose_a") ? rank - 2 : rank - 1]);
  for (int d = 0; is_flat(c) && d + 2 < rank; ++d) {
    inner *= static_cast<double>(a[d]);
  }
  Cost cost;
  cost.flops = 2 * elements(c.output(0).shape) * inner;
  double values = 0;
  for (int i = 0; i < c.num_inputs(); ++i) values += elements(c.shape(i));
  for (int i = 0; i < c.num_outputs(); ++i) {
    values += elements(c.output(i).shape);
  }
  cost.bytes = values * static_cast<double>(size_of(c.dtype(0)));
  return cost;
}

// Computes it by the ops that it was made of.
Tensors decompose_fused_matmul(std::span<const Tensor> in, const OpDef& op,
                               const Attrs* attrs) {
  const auto flag = [&](const char* name) {
    return op.attr<bool>(attrs, name);
  };
  const std::string& activation = op.attr<std::string>(attrs, "activation");
  Tensor a = in[0], b = in[1];
  if (flag("flat")) {
    const auto rows = [](const Tensor& x) {
      const int last = x.rank() - 1;
      int64_t count = 1;  // -1 would say nothing of an empty one
      for (int d = 0; d < last; ++d) count *= x.shape()[d];
      return reshape(x, {count, x.shape()[last]});
    };
    a = rows(a);
    b = rows(b);
  }
  Tensor y = matmul(
      a, b,
      {.transpose_a = flag("transpose_a"), .transpose_b = flag("transpose_b")});
  if (flag("bias")) y = nn::bias_add(y, in[2]);
  Tensors out{y};
  if (flag("keep")) out.push_back(y);
  if (flag("bias_grad")) {
    std::vector<int64_t> axes;
    for (int i = 0; i + 1 < b.rank(); ++i) axes.push_back(i);
    out.push_back(math::reduce_sum(b, {.axis = axes}));
  }
  const AttrsRef approximate({{"approximate", true}});
  if (activation == "relu") out[0] = nn::relu(y);
  if (activation == "gelu") out[0] = nn::gelu(y, {.approximate = true});
  if (activation == "gelu_grad") {
    out[0] = call1(op_named("GeluGrad"), y, in[2], approximate.get());
  }
  return out;
}

void register_fused_matmul(OpRegistry& r) {
  r.op("_FusedMatMul")
      .input("a", kRealFloats)
      .input("b", kRealFloats)
      .optional_input("operand", kRealFloats)
      .output("results")
      .num_outputs([](const OpDef& op, const Attrs* attrs) {
        return 1 + op.attr<bool>(attrs, "keep") +
               op.attr<bool>(attrs, "bias_grad");
      })
      .attr("transpose_a", false)
      .attr("transpose_b", false)
      .attr("flat", false)
      .attr("bias", false)
      .attr("activation", std::string())
      .attr("keep", false)
      .attr("bias_grad", false)
      .infer(&infer_fused_matmul)
      .cost(&cost_fused_matmul)
      .decompose(&decompose_fused_matmul)
      .not_differentiable()
      .doc(
          "activation(MatMul(a, b) + bias): `operand` is the bias, or what "
          "gelu_grad is the gradient at. keep: the activation's argument, too; "
          "bias_grad: the sum of b's rows; flat: the inner dimension has all "
          "leading ones.");
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
  register_fused_matmul(r);
}

}  // namespace berth
