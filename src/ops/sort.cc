// Order: top_k, sort, searchsorted, inverse permutations.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

using Ints = std::vector<int64_t>;

TopK top_k(const Tensor& x, int64_t k, bool sorted, Site site) {
  set_site(site);
  (void)x.dtype();  // throws on an empty handle
  Tensors r = call_many(op_of<"TopKV2">(), {&x},
                        AttrsRef({{"k", k}, {"sorted", sorted}}).get());
  return {r[0], r[1]};
}
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, int64_t k,
                Site site) {
  return call_checked(op_of<"InTopKV2">(), site, {&predictions, &targets},
                      AttrsRef({{"k", k}}).get());
}
Tensor invert_permutation(const Tensor& x, Site site) {
  return call_checked(op_of<"InvertPermutation">(), site, {&x});
}

namespace {

// The permutation that exchanges `axis` and the last one; empty when they are
// the same.
Ints to_last(const Tensor& x, int axis) {
  if (axis == x.rank() - 1) return {};
  Ints perm;
  for (int i = 0; i < x.rank(); ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  return perm;
}

bool descending(const SortOptions& o) {
  if (o.direction == "DESCENDING") return true;
  if (o.direction == "ASCENDING") return false;
  throw errors::InvalidArgument(fmt::format(
      "sort: direction is '{}'{}; expected 'ASCENDING' or 'DESCENDING'",
      o.direction, where_text()));
}

// What `op` gives for rows along the axis.
Tensor sort_by(const OpDef& op, const Tensor& x, const SortOptions& o,
               Site site) {
  set_site(site);
  const bool down = descending(o);
  const int axis = normalize_axis(o.axis, x.rank(), "sort");
  const Ints perm = to_last(x, axis);
  const Tensor rows = perm.empty() ? x : transpose(x, perm, site);
  const Tensor y = call1(op, rows, AttrsRef({{"descending", down}}).get());
  return perm.empty() ? y : transpose(y, perm, site);
}

Tensors decompose_sort(std::span<const Tensor> in, const OpDef& op,
                       const Attrs* attrs) {
  const bool down = op.attr<bool>(attrs, "descending");
  const int64_t last = in[0].rank() - 1;
  const Tensor order =
      call1(op_of<"ArgSort">(), in[0], AttrsRef({{"descending", down}}).get());
  return {gather(in[0], order, GatherOptions{.axis = last, .batch_dims = last},
                 {})};
}

}  // namespace

Tensor sort(const Tensor& x, const SortOptions& o, Site site) {
  return sort_by(op_of<"Sort">(), x, o, site);
}
Tensor argsort(const Tensor& x, const SortOptions& o, Site site) {
  return sort_by(op_of<"ArgSort">(), x, o, site);
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values,
                    const SearchOptions& o, Site site) {
  set_site(site);
  if (o.side != "left" && o.side != "right") {
    throw errors::InvalidArgument(
        fmt::format("searchsorted: side is '{}'{}; expected 'left' or 'right'",
                    o.side, where_text()));
  }
  return call_checked(
      o.side == "left" ? op_of<"LowerBound">() : op_of<"UpperBound">(), site,
      {&sorted, &values}, AttrsRef({{"out_type", o.out_type}}).get());
}

namespace {

int last_axis(const InferContext& c) {
  if (c.shape(0).rank() == 0) {
    c.fail("the tensor is a scalar; expected rank 1 or more");
  }
  return c.shape(0).rank() - 1;
}

// Places are int32.
void check_length(const InferContext& c, int64_t n) {
  if (n <= INT32_MAX) return;
  c.fail(
      fmt::format("rows have {} elements; expected at most {}", n, INT32_MAX));
}

void infer_top_k(InferContext& c) {
  Shape out = c.shape(0);
  const int last = last_axis(c);
  const int64_t k = c.attr<int64_t>("k");
  if (k < 0 || (out[last] >= 0 && k > out[last])) {
    c.fail(fmt::format("k is {}; expected 0 to {}, the length of rows of {}", k,
                       out[last] < 0 ? "?" : std::to_string(out[last]),
                       out.str()));
  }
  check_length(c, out[last]);
  out[last] = k;
  c.set_output(0, c.dtype(0), out);
  c.set_output(1, int32, out);
}

// Every axis but the last of all inputs and outputs.
std::vector<SplitSignature> split_sorted_rows(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int i = 0; i + 1 < c.shape(0).rank(); ++i) {
    SplitSignature rule;
    rule.inputs.assign(static_cast<size_t>(c.num_inputs()), cut(i));
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()), cut(i));
    rules.push_back(std::move(rule));
  }
  return rules;
}

// What was taken from a place goes back to it.
Tensors grad_top_k(const GradCall& g) {
  const int64_t last = g.x(0).rank() - 1;
  const Tensor dy = g.dy();
  return {call_with_shape_of("GatherGrad", {&dy, &g.y(1)}, g.x(0),
                             {{"axis", last}, {"batch_dims", last}})};
}

void infer_arg_sort(InferContext& c) {
  check_length(c, c.shape(0)[last_axis(c)]);
  c.set_output(0, int32, c.shape(0));
}

void infer_sort(InferContext& c) {
  check_length(c, c.shape(0)[last_axis(c)]);
  infer_same_as_0(c);
}

void infer_in_top_k(InferContext& c) {
  c.expect_rank(0, 2, "[batch, classes]");
  c.expect_rank(1, 1, "[batch]");
  const int64_t n = c.merge_dims(
      c.shape(0)[0], c.shape(1)[0],
      fmt::format("predictions are {}, targets {}; expected one target per row",
                  c.shape(0).str(), c.shape(1).str()));
  c.set_output(0, bool_, Shape{n});
}

void infer_bound(InferContext& c) {
  const Shape &sorted = c.shape(0), &values = c.shape(1);
  bool fits = sorted.rank() == values.rank() && sorted.rank() > 0;
  for (int i = 0; fits && i + 1 < sorted.rank(); ++i) {
    fits = sorted[i] < 0 || values[i] < 0 || sorted[i] == values[i];
  }
  if (!fits) {
    c.fail(
        fmt::format("the sorted rows are {}, the values {}; expected equal "
                    "shapes but for the last axis",
                    sorted.str(), values.str()));
  }
  const DType type = c.attr<DType>("out_type");
  if (!(kIndexTypes & dtype_bit(type))) {
    c.fail(
        fmt::format("out_type is {}; expected int32 or int64", name_of(type)));
  }
  if (type == int32) check_length(c, sorted[sorted.rank() - 1]);
  c.set_output(0, type, values);
}

Cost cost_sort(const InferContext& c) {
  Cost cost = cost_move(c);
  cost.flops = 10 * static_cast<double>(c.shape(0).num_elements());
  return cost;
}

void register_search_ops(OpRegistry& r) {
  r.op("InTopKV2")
      .input("predictions", kRealFloats)
      .free_input("targets", kIndexTypes)
      .output("precision")
      .required_attr("k", int64_t{1})
      .infer(&infer_in_top_k)
      .cost(&cost_move)
      .split([](const InferContext&) {
        return std::vector<SplitSignature>{{{cut(0), cut(0)}, {cut(0)}}};
      })
      .not_differentiable();
  for (const char* name : {"LowerBound", "UpperBound"}) {
    r.op(name)
        .input("sorted_inputs", kRealNumbers)
        .input("values", kRealNumbers)
        .output("output")
        .attr("out_type", int32)
        .infer(&infer_bound)
        .cost(&cost_move)
        .split([](const InferContext& c) {
          std::vector<SplitSignature> rules = split_sorted_rows(c);
          const int8_t last = cut(c.shape(0).rank() - 1);
          rules.push_back({{kWhole, last}, {last}});
          return rules;
        })
        .not_differentiable();
  }
  r.op("InvertPermutation")
      .input("x", kIndexTypes)
      .output("y")
      .infer([](InferContext& c) {
        c.expect_rank(0, 1, "[n]");
        infer_same_as_0(c);
      })
      .cost(&cost_move)
      .not_differentiable();
}

}  // namespace

void register_sort_ops(OpRegistry& r) {
  r.op("TopKV2")
      .input("input", kRealNumbers)
      .output("values")
      .output("indices")
      .required_attr("k", int64_t{1})
      .attr("sorted", true)
      .infer(&infer_top_k)
      .cost(&cost_sort)
      .split(&split_sorted_rows)
      .gradient(&grad_top_k);
  r.op("ArgSort")
      .input("input", kRealNumbers)
      .output("indices")
      .attr("descending", false)
      .infer(&infer_arg_sort)
      .cost(&cost_sort)
      .split(&split_sorted_rows)
      .not_differentiable()
      .doc("Places of the elements of each row in order; equals keep theirs.");
  r.op("Sort")
      .input("input", kRealNumbers)
      .output("values")
      .attr("descending", false)
      .infer(&infer_sort)
      .cost(&cost_sort)
      .split(&split_sorted_rows)
      .decompose(&decompose_sort)
      .doc("The elements of each row in order; equals keep theirs.");
  register_search_ops(r);
}

}  // namespace berth
