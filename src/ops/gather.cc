// Elements chosen by other tensors: gather, one_hot, where.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, Site site) {
  return call_checked(op_of<"GatherV2">(), site, {&x, &indices},
                      AttrsRef({{"axis", axis}}).get());
}
Tensor gather(const Tensor& x, const Tensor& indices, const GatherOptions& o,
              Site site) {
  return call_checked(op_of<"GatherV2">(), site, {&x, &indices},
                      AttrsRef({{"axis", o.axis.value_or(o.batch_dims)},
                                {"batch_dims", o.batch_dims}})
                          .get());
}
Tensor one_hot(const Tensor& indices, int64_t depth, const OneHotOptions& o,
               Site site) {
  return call_checked(op_of<"OneHot">(), site, {&indices},
                      AttrsRef({{"depth", depth},
                                {"on_value", o.on},
                                {"off_value", o.off},
                                {"axis", o.axis},
                                {"dtype", o.dtype}})
                          .get());
}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b,
             Site site) {
  return call_checked(op_of<"SelectV2">(), site, {&condition, &a, &b});
}

namespace {

int gather_axis(const InferContext& c, const Shape& params) {
  return normalize_axis(c.attr<int64_t>("axis"), params.rank(),
                        c.op().name().c_str());
}

// Leading axes that params and indices have in common.
int batch_dims_of(const InferContext& c, const Shape& params,
                  const Shape& indices) {
  int64_t dims = c.attr<int64_t>("batch_dims");
  if (dims < 0) dims += indices.rank();
  if (dims < 0 || dims > indices.rank() || dims > gather_axis(c, params)) {
    c.fail(
        fmt::format("batch_dims is {}; expected at most the rank of the "
                    "indices {} and the axis {} of {}",
                    c.attr<int64_t>("batch_dims"), indices.str(),
                    c.attr<int64_t>("axis"), params.str()));
  }
  for (int i = 0; i < dims; ++i) {
    if (params[i] < 0 || indices[i] < 0 || params[i] == indices[i]) continue;
    c.fail(
        fmt::format("params are {}, indices {}; expected equal first {} "
                    "axes, the batch_dims",
                    params.str(), indices.str(), dims));
  }
  return static_cast<int>(dims);
}

// [params before axis, indices after the batch, params after axis]
Shape gathered_shape(const InferContext& c, const Shape& params,
                     const Shape& indices) {
  const int axis = gather_axis(c, params);
  const int batch = batch_dims_of(c, params, indices);
  Shape out = params;
  for (int i = 0; i < batch; ++i) {
    if (out[i] < 0) out[i] = indices[i];
  }
  out.erase(axis);
  for (int i = batch; i < indices.rank(); ++i) {
    out.insert(axis + i - batch, indices[i]);
  }
  return out;
}

void infer_gather(InferContext& c) {
  const Shape out = gathered_shape(c, c.shape(0), c.shape(1));
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

// One way to cut a gather: axes of params, indices and the gathered tensor;
// kWhole where none is split.
struct GatherCut {
  int8_t params, indices, gathered;
};

// Some of the indices, some of a batch, or some of an axis that is not
// gathered.
std::vector<GatherCut> gather_cuts(const InferContext& c, const Shape& params,
                                   const Shape& indices) {
  const int axis = gather_axis(c, params);
  const int batch = batch_dims_of(c, params, indices);
  const int n = indices.rank() - batch;
  std::vector<GatherCut> cuts;
  for (int i = 0; i < n; ++i) {
    cuts.push_back({kWhole, cut(batch + i), cut(axis + i)});
  }
  for (int i = 0; i < params.rank(); ++i) {
    if (i == axis) continue;
    cuts.push_back(
        {cut(i), i < batch ? cut(i) : kWhole, cut(i < axis ? i : i + n - 1)});
  }
  return cuts;
}

std::vector<SplitSignature> split_gather(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (const GatherCut& g : gather_cuts(c, c.shape(0), c.shape(1))) {
    rules.push_back({{g.params, g.indices}, {g.gathered}});
  }
  return rules;
}

Tensors grad_gather(const GradCall& g) {
  const Tensor dy = g.dy();
  return {call_with_shape_of("GatherGrad", {&dy, &g.x(1)}, g.x(0),
                             {{"axis", g.attr<int64_t>("axis")},
                              {"batch_dims", g.attr<int64_t>("batch_dims")}}),
          {}};
}

void infer_gather_grad(InferContext& c) {
  const Shape shape = c.num_inputs() == 3 ? c.shape(2) : c.attr<Shape>("shape");
  const Shape want = gathered_shape(c, shape, c.shape(1));
  if (!want.compatible_with(c.shape(0))) {
    c.fail(fmt::format("dy is {}; expected {}, as gathered from {}",
                       c.shape(0).str(), want.str(), shape.str()));
  }
  check_elements(c, shape);
  c.set_output(0, c.dtype(0), shape);
}

// Some of the indices give partial sums.
std::vector<SplitSignature> split_gather_grad(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (const GatherCut& g : gather_cuts(c, c.output(0).shape, c.shape(1))) {
    const int8_t out = g.params == kWhole ? kPartialSum : g.params;
    SplitSignature rule{{g.gathered, g.indices}, {out}};
    if (c.num_inputs() == 3) rule.inputs.push_back(g.params);
    rules.push_back(std::move(rule));
  }
  return rules;
}

Tensors grad_gather_grad(const GradCall& g) {
  Tensors grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = gather(g.dy(), g.x(1),
                    GatherOptions{.axis = g.attr<int64_t>("axis"),
                                  .batch_dims = g.attr<int64_t>("batch_dims")},
                    {});
  return grads;
}

int one_hot_axis(const InferContext& c) {
  return normalize_axis(c.attr<int64_t>("axis"), c.shape(0).rank() + 1,
                        "OneHot");
}

void infer_one_hot(InferContext& c) {
  const int64_t depth = c.attr<int64_t>("depth");
  const DType dtype = c.attr<DType>("dtype");
  if (depth < 0) {
    c.fail(fmt::format("depth is {}; expected 0 or more", depth));
  }
  if (!(kEveryType & dtype_bit(dtype))) {
    c.fail(fmt::format("dtype is {}; expected one that holds numbers",
                       name_of(dtype)));
  }
  check_value(c, "on_value", c.attr<double>("on_value"), dtype);
  check_value(c, "off_value", c.attr<double>("off_value"), dtype);
  Shape out = c.shape(0);
  out.insert(one_hot_axis(c), depth);
  check_elements(c, out);
  c.set_output(0, dtype, out);
}

std::vector<SplitSignature> split_one_hot(const InferContext& c) {
  const int axis = one_hot_axis(c);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    rules.push_back({{cut(i)}, {cut(i < axis ? i : i + 1)}});
  }
  return rules;
}

void infer_select(InferContext& c) {
  Shape shape = broadcast_shapes(c, c.shape(1), c.shape(2));
  shape = broadcast_shapes(c, c.shape(0), shape);
  c.set_output(0, c.dtype(1), shape);
}

Tensors grad_select(const GradCall& g) {
  static const OpDef& op = op_named("SelectV2");
  const Tensor dy = g.dy(), zero = scalar_like(dy, 0);
  Tensor da, db;
  if (g.needs(1)) da = sum_to(call1(op, {&g.x(0), &dy, &zero}), g.x(1));
  if (g.needs(2)) db = sum_to(call1(op, {&g.x(0), &zero, &dy}), g.x(2));
  return {{}, da, db};
}

}  // namespace

void register_gather_ops(OpRegistry& r) {
  r.op("GatherV2")
      .input("params")
      .free_input("indices", kIndexTypes)
      .output("output")
      .attr("axis", int64_t{0})
      .attr("batch_dims", int64_t{0})
      .infer(&infer_gather)
      .cost(&cost_pick)
      .split(&split_gather)
      .gradient(&grad_gather);
  for (const bool like : {false, true}) {
    OpBuilder op = r.op(like ? "GatherGradLike" : "GatherGrad");
    op.input("dy", kEveryNumber).free_input("indices", kIndexTypes);
    if (like) {
      op.free_input("like");
    } else {
      op.required_attr("shape", Shape{});
    }
    op.output("dx")
        .attr("axis", int64_t{0})
        .attr("batch_dims", int64_t{0})
        .infer(&infer_gather_grad)
        .split(&split_gather_grad)
        .gradient(&grad_gather_grad)
        .doc("Adds each slice of dy to the place that it was gathered from.");
  }
  r.op("OneHot")
      .input("indices", kIntegerTypes)
      .output("output")
      .required_attr("depth", int64_t{0})
      .attr("on_value", 1.0)
      .attr("off_value", 0.0)
      .attr("axis", int64_t{-1})
      .attr("dtype", float32)
      .infer(&infer_one_hot)
      .cost(&cost_move)
      .split(&split_one_hot)
      .not_differentiable();
  r.op("SelectV2")
      .free_input("condition", kBoolType)
      .input("t")
      .input("e")
      .output("output")
      .infer(&infer_select)
      .elementwise()
      .gradient(&grad_select);
}

}  // namespace berth
