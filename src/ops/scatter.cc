// Elements read and written at coordinates: gather_nd, scatter_nd, tensor and
// variable scatter updates.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "berth/variable.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "tensor/variable_state.h"

namespace berth {

Tensor gather_nd(const Tensor& params, const Tensor& indices, Site site) {
  return call_checked(op_of<"GatherNd">(), site, {&params, &indices});
}
Tensor scatter_nd(const Tensor& indices, const Tensor& updates,
                  const Shape& shape, Site site) {
  return call_checked(op_of<"ScatterNd">(), site, {&indices, &updates},
                      AttrsRef({{"shape", shape}}).get());
}
Tensor tensor_scatter_nd_update(const Tensor& tensor, const Tensor& indices,
                                const Tensor& updates, Site site) {
  return call_checked(op_of<"TensorScatterUpdate">(), site,
                      {&tensor, &indices, &updates});
}
Tensor tensor_scatter_nd_add(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site) {
  return call_checked(op_of<"TensorScatterAdd">(), site,
                      {&tensor, &indices, &updates});
}
Tensor tensor_scatter_nd_sub(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site) {
  return call_checked(op_of<"TensorScatterSub">(), site,
                      {&tensor, &indices, &updates});
}
Tensor tensor_scatter_nd_min(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site) {
  return call_checked(op_of<"TensorScatterMin">(), site,
                      {&tensor, &indices, &updates});
}
Tensor tensor_scatter_nd_max(const Tensor& tensor, const Tensor& indices,
                             const Tensor& updates, Site site) {
  return call_checked(op_of<"TensorScatterMax">(), site,
                      {&tensor, &indices, &updates});
}

namespace {

// In a replica: what all write; rows of several replicas are not combined.
Tensor to_scatter(const Variable& v, const Tensor& t, const char* op) {
  ReplicaScope* replica = t_state.replica;
  if (replica == nullptr) return t;
  const VariableAggregation how = v.aggregation();
  const bool combines =
      how == VariableAggregation::kSum || how == VariableAggregation::kMean;
  if (combines && replica->strategy().num_replicas() > 1 &&
      variable_state(v.handle()).parts.empty() && !Unaggregated::active()) {
    throw errors::Unimplemented(fmt::format(
        "{} of \"{}\" in a replica{}: rows of several replicas are not "
        "combined; expected kOnlyFirstReplica, or assign_add() of a whole "
        "value",
        op, v.name(), where_text()));
  }
  return replica->to_write(v.handle(), t, op);
}

const Variable& scatter(const char* op, const Variable& v,
                        const Tensor& indices, const Tensor& updates,
                        Site site) {
  set_site(site);
  const Tensor at = to_scatter(v, indices, op), by = to_scatter(v, updates, op);
  const Tensor* in[] = {&v.handle(), &at, &by};
  apply(op_named(op), in, nullptr, {});
  return v;
}

}  // namespace

const Variable& Variable::scatter_add(const IndexedSlices& s, Site site) const {
  return scatter("ResourceScatterAdd", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_sub(const IndexedSlices& s, Site site) const {
  return scatter("ResourceScatterSub", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_mul(const IndexedSlices& s, Site site) const {
  return scatter("ResourceScatterMul", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_div(const IndexedSlices& s, Site site) const {
  return scatter("ResourceScatterDiv", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_min(const IndexedSlices& s, Site site) const {
  return scatter("ResourceScatterMin", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_max(const IndexedSlices& s, Site site) const {
  return scatter("ResourceScatterMax", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_update(const IndexedSlices& s,
                                         Site site) const {
  return scatter("ResourceScatterUpdate", *this, s.indices, s.values, site);
}
const Variable& Variable::scatter_nd_update(const Tensor& indices,
                                            const Tensor& updates,
                                            Site site) const {
  return scatter("ResourceScatterNdUpdate", *this, indices, updates, site);
}
const Variable& Variable::scatter_nd_add(const Tensor& indices,
                                         const Tensor& updates,
                                         Site site) const {
  return scatter("ResourceScatterNdAdd", *this, indices, updates, site);
}
const Variable& Variable::scatter_nd_sub(const Tensor& indices,
                                         const Tensor& updates,
                                         Site site) const {
  return scatter("ResourceScatterNdSub", *this, indices, updates, site);
}

namespace {

// How many coordinates each index has.
int depth_of(const InferContext& c, const Shape& indices, const Shape& target) {
  const int last = indices.rank() - 1;
  if (last < 0 || indices[last] < 0 || indices[last] > target.rank()) {
    c.fail(
        fmt::format("the indices are {}; expected a known last dimension of "
                    "at most {}, the rank of {}",
                    indices.str(), target.rank(), target.str()));
  }
  return static_cast<int>(indices[last]);
}

// [indices without their last axis, target after the first `depth` axes]
Shape rows_shape(const InferContext& c, const Shape& indices,
                 const Shape& target) {
  const int depth = depth_of(c, indices, target);
  Shape out = indices;
  out.erase(out.rank() - 1);
  for (int i = depth; i < target.rank(); ++i) out.push_back(target[i]);
  return out;
}

void expect_updates(const InferContext& c, const Shape& updates,
                    const Shape& want, const Shape& target) {
  if (want.compatible_with(updates)) return;
  c.fail(fmt::format("the updates are {}; expected {} for {}", updates.str(),
                     want.str(), target.str()));
}

void infer_gather_nd(InferContext& c) {
  const Shape out = rows_shape(c, c.shape(1), c.shape(0));
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

// Some of the indices, or part of an axis of the slices.
std::vector<SplitSignature> split_gather_nd(const InferContext& c) {
  const int n = c.shape(1).rank() - 1;
  const int depth = depth_of(c, c.shape(1), c.shape(0));
  std::vector<SplitSignature> rules;
  for (int i = 0; i < n; ++i) rules.push_back({{kWhole, cut(i)}, {cut(i)}});
  for (int i = depth; i < c.shape(0).rank(); ++i) {
    rules.push_back({{cut(i), kWhole}, {cut(n + i - depth)}});
  }
  return rules;
}

Tensors grad_gather_nd(const GradCall& g) {
  const Tensor dy = g.dy();
  return {call_with_shape_of("ScatterNd", {&g.x(1), &dy}, g.x(0), {}), {}};
}

void infer_scatter_nd(InferContext& c) {
  const Shape shape = c.num_inputs() == 3 ? c.shape(2) : c.attr<Shape>("shape");
  expect_updates(c, c.shape(1), rows_shape(c, c.shape(0), shape), shape);
  check_elements(c, shape);
  c.set_output(0, c.dtype(1), shape);
}

// Some of the indices give partial sums.
std::vector<SplitSignature> split_scatter_nd(const InferContext& c) {
  const Shape& out = c.output(0).shape;
  const int n = c.shape(0).rank() - 1;
  const int depth = depth_of(c, c.shape(0), out);
  const bool like = c.num_inputs() == 3;
  std::vector<SplitSignature> rules;
  for (int i = 0; i < n; ++i) {
    SplitSignature rule{{cut(i), cut(i)}, {kPartialSum}};
    if (like) rule.inputs.push_back(kWhole);
    rules.push_back(std::move(rule));
  }
  for (int i = depth; i < out.rank(); ++i) {
    SplitSignature rule{{kWhole, cut(n + i - depth)}, {cut(i)}};
    if (like) rule.inputs.push_back(cut(i));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Tensors grad_scatter_nd(const GradCall& g) {
  Tensors grads(static_cast<size_t>(g.num_inputs()));
  grads[1] = gather_nd(g.dy(), g.x(0), {});
  return grads;
}

void infer_tensor_scatter(InferContext& c) {
  expect_updates(c, c.shape(2), rows_shape(c, c.shape(1), c.shape(0)),
                 c.shape(0));
  infer_same_as_0(c);
}

// Axes of the slices.
std::vector<SplitSignature> split_tensor_scatter(const InferContext& c) {
  const int n = c.shape(1).rank() - 1;
  const int depth = depth_of(c, c.shape(1), c.shape(0));
  std::vector<SplitSignature> rules;
  for (int i = depth; i < c.shape(0).rank(); ++i) {
    SplitSignature rule{{cut(i), kWhole, cut(n + i - depth)}, {}};
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()), cut(i));
    rules.push_back(std::move(rule));
  }
  return rules;
}

template <int kSign>
Tensors grad_tensor_add(const GradCall& g) {
  const Tensor at = g.needs(2) ? gather_nd(g.dy(), g.x(1), {}) : Tensor();
  return {g.dy(), {}, kSign < 0 && at.defined() ? -at : at};
}

Tensors grad_tensor_update(const GradCall& g) {
  Tensor dx, du;
  if (g.needs(0)) {
    dx = tensor_scatter_nd_update(g.dy(), g.x(1), zeros_like(g.x(2), {}), {});
  }
  if (g.needs(2)) du = gather_nd(g.dy(), g.x(1), {});
  return {dx, {}, du};
}

// Shared equally by all that reach the extreme.
Tensors grad_tensor_extreme(const GradCall& g) {
  const DType d = g.y().dtype();
  const Tensor& indices = g.x(1);
  const Tensor own = math::cast(math::equal(g.x(0), g.y(), {}), d, {});
  const Tensor new_ones =
      math::cast(math::equal(g.x(2), gather_nd(g.y(), indices, {}), {}), d, {});
  const Tensor count = tensor_scatter_nd_add(own, indices, new_ones, {});
  const Tensor share = g.dy() / count;
  return {share * own, {}, gather_nd(share, indices, {}) * new_ones};
}

void infer_resource_scatter(InferContext& c) {
  const Shape& var = c.shape(0);
  if (var.rank() == 0) c.fail("the variable is a scalar; expected rows");
  Shape want = c.shape(1);
  for (int i = 1; i < var.rank(); ++i) want.push_back(var[i]);
  expect_updates(c, c.shape(2), want, var);
}

std::vector<SplitSignature> split_resource_scatter(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int i = 1; i < c.shape(0).rank(); ++i) {
    rules.push_back({{cut(i), kWhole, cut(c.shape(1).rank() + i - 1)}, {}});
  }
  return rules;
}

void infer_resource_scatter_nd(InferContext& c) {
  expect_updates(c, c.shape(2), rows_shape(c, c.shape(1), c.shape(0)),
                 c.shape(0));
}

void tensor_scatter(OpRegistry& r, const char* name, DTypeSet types,
                    GradientFn gradient) {
  r.op(name)
      .input("tensor", types)
      .free_input("indices", kIndexTypes)
      .input("updates", types)
      .output("output")
      .infer(&infer_tensor_scatter)
      .cost(&cost_move)
      .split(&split_tensor_scatter)
      .gradient(gradient);
}

void resource_scatter(OpRegistry& r, const char* name, DTypeSet types,
                      bool nd) {
  r.op(name)
      .writes_variable("resource")
      .free_input("indices", kIndexTypes)
      .input("updates", types)
      .infer(nd ? &infer_resource_scatter_nd : &infer_resource_scatter)
      .split(nd ? &split_tensor_scatter : &split_resource_scatter)
      .not_differentiable();
}

void register_resource_scatter(OpRegistry& r) {
  for (const char* name :
       {"ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul",
        "ResourceScatterMin", "ResourceScatterMax"}) {
    resource_scatter(r, name, kNumberTypes | kMoreIntegers, false);
  }
  resource_scatter(r, "ResourceScatterDiv", kFloatingTypes, false);
  resource_scatter(r, "ResourceScatterUpdate", kAllTypes | kMoreIntegers,
                   false);
  resource_scatter(r, "ResourceScatterNdUpdate", kAllTypes | kMoreIntegers,
                   true);
  resource_scatter(r, "ResourceScatterNdAdd", kNumberTypes | kMoreIntegers,
                   true);
  resource_scatter(r, "ResourceScatterNdSub", kNumberTypes | kMoreIntegers,
                   true);
}

}  // namespace

void register_scatter_ops(OpRegistry& r) {
  r.op("GatherNd")
      .input("params")
      .free_input("indices", kIndexTypes)
      .output("output")
      .infer(&infer_gather_nd)
      .cost(&cost_pick)
      .split(&split_gather_nd)
      .gradient(&grad_gather_nd);
  for (const bool like : {false, true}) {
    OpBuilder op = r.op(like ? "ScatterNdLike" : "ScatterNd");
    op.free_input("indices", kIndexTypes)
        .input("updates", kNumberTypes | kMoreIntegers);
    if (like) {
      op.free_input("like");
    } else {
      op.required_attr("shape", Shape{});
    }
    op.output("output")
        .infer(&infer_scatter_nd)
        .cost(&cost_move)
        .split(&split_scatter_nd)
        .gradient(&grad_scatter_nd);
  }
  tensor_scatter(r, "TensorScatterUpdate", kRealNumbers | kBoolType,
                 &grad_tensor_update);
  tensor_scatter(r, "TensorScatterAdd", kRealNumbers, &grad_tensor_add<1>);
  tensor_scatter(r, "TensorScatterSub", kRealNumbers, &grad_tensor_add<-1>);
  tensor_scatter(r, "TensorScatterMin", kRealNumbers, &grad_tensor_extreme);
  tensor_scatter(r, "TensorScatterMax", kRealNumbers, &grad_tensor_extreme);
  register_resource_scatter(r);
}

}  // namespace berth
