// Maximum and mean over windows, and their gradients.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "berth/ops/array.h"
#include "op/window.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

using Sizes = std::vector<int64_t>;

std::vector<Attrs::Pair> pool_attrs(const GradCall& g) {
  return {{"ksize", g.attr<Sizes>("ksize")},
          {"strides", g.attr<Sizes>("strides")},
          {"padding", g.attr<std::string>("padding")}};
}

Shape pooled(const InferContext& c, const Shape& x) {
  const WindowAxes w = pool_windows(c.op(), c.attrs(), x);
  return {x[0], w.h.out, w.w.out, x[3]};
}

void infer_pool(InferContext& c) {
  c.expect_rank(0, 4, "[n, h, w, c]");
  c.set_output(0, c.dtype(0), pooled(c, c.shape(0)));
}

void check_pooled(const InferContext& c, int input, const Shape& x) {
  const Shape want = pooled(c, x);
  if (want.compatible_with(c.shape(input))) return;
  c.fail(fmt::format("{} is {}, but pooling {} gives {}",
                     c.op().input(input).name, c.shape(input).str(), x.str(),
                     want.str()));
}

// (orig_input, orig_output, grad): like orig_input, or for the gradient's
// gradient, where grad is like orig_input, like orig_output.
void infer_max_pool_grad(InferContext& c) {
  for (int i = 0; i < 3; ++i) c.expect_rank(i, 4, "[n, h, w, c]");
  check_pooled(c, 1, c.shape(0));
  check_pooled(c, 2, c.shape(0));
  c.set_output(0, c.dtype(0), c.shape(0));
}

void infer_max_pool_grad_grad(InferContext& c) {
  for (int i = 0; i < 3; ++i) c.expect_rank(i, 4, "[n, h, w, c]");
  check_pooled(c, 1, c.shape(0));
  if (!c.shape(2).compatible_with(c.shape(0))) {
    c.fail(fmt::format("grad is {}; expected {}", c.shape(2).str(),
                       c.shape(0).str()));
  }
  c.set_output(0, c.dtype(0), pooled(c, c.shape(0)));
}

// Batch and channels come from grad; height and width from the attribute or
// from the shape of operand 1.
void infer_avg_pool_grad(InferContext& c) {
  c.expect_rank(0, 4, "[n, oh, ow, c]");
  Shape x;
  if (c.num_inputs() == 2) {
    c.expect_rank(1, 4, "[n, h, w, c]");
    x = c.shape(1);
  } else {
    const Sizes& list = c.attr<Sizes>("orig_input_shape");
    if (list.size() != 4 || list[1] < 0 || list[2] < 0) {
      c.fail(fmt::format("orig_input_shape is [{}]; expected [n, h, w, c]",
                         fmt::join(list, ", ")));
    }
    x = Shape(list);
    for (int axis : {0, 3}) x[axis] = c.shape(0)[axis];
  }
  for (int axis : {0, 3}) {
    const int64_t dim = c.shape(0)[axis];
    x[axis] = c.merge_dims(dim, x[axis],
                           fmt::format("orig_input_like is {}; expected "
                                       "shape[{}] == {}",
                                       x.str(), axis, dim));
  }
  check_pooled(c, 0, x);
  c.set_output(0, c.dtype(0), x);
}

// One operation per pixel of each window.
Cost cost_pool(const InferContext& c) {
  double most = static_cast<double>(c.output(0).shape.num_elements());
  double elements = most;
  double least = most;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const double n = static_cast<double>(c.shape(i).num_elements());
    elements += n;
    least = n < least ? n : least;
  }
  const auto& k = c.attr<Sizes>("ksize");
  return {least * static_cast<double>(k[1] * k[2]),
          elements * static_cast<double>(size_of(c.dtype(0)))};
}

// Images and channels are independent.
std::vector<SplitSignature> split_pool(const InferContext& c) {
  std::vector<SplitSignature> rules;
  const auto n = static_cast<size_t>(c.num_inputs());
  for (int8_t axis : {0, 3}) {
    rules.push_back({std::vector<int8_t>(n, axis), {axis}});
  }
  return rules;
}

// Which pixel is largest does not depend smoothly on anything.
Tensors only_last(const GradCall& g, const OpDef& op) {
  Tensors d(3);
  for (int i = 0; i < 2; ++i) {
    if (g.needs(i)) d[i] = zeros_like(g.x(i), {});
  }
  if (g.needs(2)) {
    const Tensor dy = g.dy();
    d[2] = call1(op, {&g.x(0), &g.x(1), &dy}, g.attrs());
  }
  return d;
}

Tensors grad_max_pool(const GradCall& g) {
  const Tensor dy = g.dy();
  return {call1(op_of<"MaxPoolGrad">(), {&g.x(0), &g.y(), &dy}, g.attrs())};
}

Tensors grad_avg_pool(const GradCall& g) {
  static const OpDef& op = op_named("AvgPoolGrad");
  auto attrs = pool_attrs(g);
  const Shape& x = g.x(0).shape();
  if (x[1] < 0 || x[2] < 0) {
    return {call1(op, g.dy(), g.x(0), AttrsRef(std::move(attrs)).get())};
  }
  attrs.push_back(
      {"orig_input_shape", Sizes{kUnknownDim, x[1], x[2], kUnknownDim}});
  return {call1(op, g.dy(), AttrsRef(std::move(attrs)).get())};
}

Tensors grad_avg_pool_grad(const GradCall& g) {
  Tensors d(static_cast<size_t>(g.num_inputs()));
  d[0] = call1(op_of<"AvgPool">(), g.dy(), AttrsRef(pool_attrs(g)).get());
  return d;
}

// What all ops of the family have.
void pool_op(OpBuilder& op, InferFn infer, GradientFn gradient) {
  op.output("output")
      .required_attr("ksize", Sizes{})
      .required_attr("strides", Sizes{})
      .required_attr("padding", std::string())
      .infer(infer)
      .cost(&cost_pool)
      .split(&split_pool)
      .gradient(gradient);
}

// The index says nothing about the batch, but counts in whole rows of
// channels.
void register_with_argmax(OpRegistry& r) {
  OpBuilder op = r.op("MaxPoolWithArgmax");
  op.input("input", kRealFloats);
  pool_op(
      op,
      [](InferContext& c) {
        infer_pool(c);
        c.set_output(1, int64, c.output(0).shape);
      },
      &grad_max_pool);
  op.output("argmax")
      .split([](const InferContext&) {
        return std::vector<SplitSignature>{{{0}, {0, 0}}};
      })
      .doc("argmax is (y * w + x) * c + channel of the first largest pixel.");
}

}  // namespace

void register_pool_ops(OpRegistry& r) {
  {
    OpBuilder op = r.op("MaxPool");
    op.input("input", kRealFloats);
    pool_op(op, &infer_pool, &grad_max_pool);
  }
  {
    OpBuilder op = r.op("AvgPool");
    op.input("value", kRealFloats);
    pool_op(op, &infer_pool, &grad_avg_pool);
    op.doc("The mean of the pixels inside the image.");
  }
  for (const char* name : {"MaxPoolGrad", "MaxPoolGradGrad"}) {
    OpBuilder op = r.op(name);
    op.input("orig_input", kRealFloats)
        .input("orig_output", kRealFloats)
        .input("grad", kRealFloats);
    if (std::string_view(name) == "MaxPoolGrad") {
      pool_op(op, &infer_max_pool_grad, [](const GradCall& g) {
        return only_last(g, op_of<"MaxPoolGradGrad">());
      });
      op.doc("The first of equal pixels, in row-major order, gets it.");
    } else {
      pool_op(op, &infer_max_pool_grad_grad, [](const GradCall& g) {
        return only_last(g, op_of<"MaxPoolGrad">());
      });
    }
  }
  register_with_argmax(r);
  OpBuilder op = r.op("AvgPoolGrad");
  op.input("grad", kRealFloats)
      .optional_input("orig_input_like", kRealFloats)
      .attr("orig_input_shape", Sizes{});
  pool_op(op, &infer_avg_pool_grad, &grad_avg_pool_grad);
}

}  // namespace berth
