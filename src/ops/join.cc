// Several tensors into one and back: concat, stack, unstack.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

Tensor join(const OpDef& op, const Tensors& parts, int64_t axis, Site site) {
  set_site(site);
  for (const Tensor& t : parts) (void)t.dtype();  // throws when empty
  return call_list(op, parts, AttrsRef({{"axis", axis}}).get()).at(0);
}

}  // namespace

Tensor concat(const Tensors& parts, int64_t axis, Site site) {
  return join(op_of<"ConcatV2">(), parts, axis, site);
}
Tensor stack(const Tensors& parts, int64_t axis, Site site) {
  return join(op_of<"Pack">(), parts, axis, site);
}
Tensors unstack(const Tensor& x, int64_t axis, Site site) {
  set_site(site);
  const int at = normalize_axis(axis, x.rank(), "Unpack");
  const int64_t num = x.shape()[at];
  if (num < 0) {
    throw errors::InvalidArgument(fmt::format(
        "Unpack: the length of axis {} of {} is not known{}; expected a known "
        "one: give the traced function a full signature",
        axis, x.shape().str(), where_text()));
  }
  if (num == 0) return {};
  return call_many(op_of<"Unpack">(), {&x},
                   AttrsRef({{"axis", axis}, {"num", num}}).get());
}

namespace {

void infer_concat(InferContext& c) {
  Shape out = c.shape(0);
  if (out.rank() == 0)
    c.fail("the values are scalars; expected rank 1 or more: write stack");
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), out.rank(), "ConcatV2");
  for (int p = 1; p < c.num_inputs(); ++p) {
    const Shape& part = c.shape(p);
    if (part.rank() != out.rank()) {
      c.fail(fmt::format("value {} is {}, value 0 is {}; expected equal ranks",
                         p, part.str(), c.shape(0).str()));
    }
    for (int i = 0; i < out.rank(); ++i) {
      if (i == axis) {
        out[i] = add_dims(c, out[i], part[i]);
      } else if (out[i] < 0) {
        out[i] = part[i] < 0 ? out[i] : part[i];
      } else if (part[i] >= 0 && part[i] != out[i]) {
        c.fail(
            fmt::format("value {} is {}, value 0 is {}; expected equal "
                        "shapes but for axis {}",
                        p, part.str(), c.shape(0).str(), axis));
      }
    }
  }
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

// Every axis but the joined one.
std::vector<SplitSignature> split_concat(const InferContext& c) {
  const int rank = c.output(0).shape.rank();
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), rank, c.op().name().c_str());
  std::vector<SplitSignature> rules;
  for (int i = 0; i < rank; ++i) {
    if (i == axis) continue;
    SplitSignature rule;
    rule.inputs.assign(static_cast<size_t>(c.num_inputs()), cut(i));
    rule.outputs = {cut(i)};
    rules.push_back(std::move(rule));
  }
  return rules;
}

// Part p of dy. Where the lengths of the parts before it are known it is a
// slice; else the parts themselves are operands.
Tensor part_of(const GradCall& g, const Tensor& dy, int axis, int p) {
  int64_t begin = 0;
  bool known = g.x(p).shape()[axis] >= 0;
  for (int i = 0; i < p && known; ++i) {
    const int64_t d = g.x(i).shape()[axis];
    known = d >= 0;
    begin += d;
  }
  if (known) {
    const size_t rank = static_cast<size_t>(dy.rank());
    std::vector<int64_t> begins(rank, 0), sizes(rank, -1);
    begins[axis] = begin;
    sizes[axis] = g.x(p).shape()[axis];
    return slice(dy, begins, sizes, {});
  }
  Tensors in{dy};
  for (int i = 0; i < g.num_inputs(); ++i) in.push_back(g.x(i));
  return call_list(
             op_of<"ConcatGrad">(), in,
             AttrsRef({{"axis", int64_t{axis}}, {"index", int64_t{p}}}).get())
      .at(0);
}

Tensors grad_concat(const GradCall& g) {
  const Tensor dy = g.dy();
  const int axis =
      normalize_axis(g.attr<int64_t>("axis"), dy.rank(), "ConcatV2");
  Tensors grads(static_cast<size_t>(g.num_inputs()));
  for (int p = 0; p < g.num_inputs(); ++p) {
    if (g.needs(p)) grads[p] = part_of(g, dy, axis, p);
  }
  return grads;
}

void infer_concat_grad(InferContext& c) {
  const int64_t index = c.attr<int64_t>("index");
  if (index < 0 || index + 1 >= c.num_inputs()) {
    c.fail(fmt::format("index {} of {} parts; expected one of them", index,
                       c.num_inputs() - 1));
  }
  const Shape& dy = c.shape(0);
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), dy.rank(), "ConcatGrad");
  int64_t total = 0;
  for (int i = 1; i < c.num_inputs(); ++i) {
    bool fits = c.shape(i).rank() == dy.rank();
    for (int d = 0; fits && d < dy.rank(); ++d) {
      fits =
          d == axis || c.shape(i)[d] < 0 || dy[d] < 0 || c.shape(i)[d] == dy[d];
    }
    if (!fits) {
      c.fail(
          fmt::format("part {} is {}, dy is {}; expected equal shapes but "
                      "for axis {}",
                      i - 1, c.shape(i).str(), dy.str(), axis));
    }
    total = add_dims(c, total, c.shape(i)[axis]);
  }
  if (total >= 0 && dy[axis] >= 0 && total != dy[axis]) {
    c.fail(fmt::format("the parts add up to {} along axis {} of {}", total,
                       axis, dy.str()));
  }
  c.set_output(0, c.dtype(0), c.shape(static_cast<int>(index) + 1));
}

Tensors grad_concat_grad(const GradCall& g) {
  Tensors parts;
  for (int i = 1; i < g.num_inputs(); ++i) {
    parts.push_back(i - 1 == g.attr<int64_t>("index") ? g.dy()
                                                      : zeros_like(g.x(i), {}));
  }
  Tensors grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = concat(parts, g.attr<int64_t>("axis"), {});
  return grads;
}

void infer_pack(InferContext& c) {
  Shape out = c.shape(0);
  for (int p = 1; p < c.num_inputs(); ++p) {
    if (!c.shape(p).compatible_with(c.shape(0))) {
      c.fail(fmt::format("value {} is {}, value 0 is {}; expected equal shapes",
                         p, c.shape(p).str(), c.shape(0).str()));
    }
    for (int i = 0; i < out.rank(); ++i) {
      if (out[i] < 0) out[i] = c.shape(p)[i] < 0 ? out[i] : c.shape(p)[i];
    }
  }
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), out.rank() + 1, "Pack");
  out.insert(axis, c.num_inputs());
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

std::vector<SplitSignature> split_pack(const InferContext& c) {
  const int rank = c.output(0).shape.rank();
  const int axis = normalize_axis(c.attr<int64_t>("axis"), rank, "Pack");
  std::vector<SplitSignature> rules;
  for (int i = 0; i + 1 < rank; ++i) {
    SplitSignature rule;
    rule.inputs.assign(static_cast<size_t>(c.num_inputs()), cut(i));
    rule.outputs = {cut(i < axis ? i : i + 1)};
    rules.push_back(std::move(rule));
  }
  return rules;
}

int count_unpack(const OpDef& op, const Attrs* attrs) {
  const int64_t num = op.attr<int64_t>(attrs, "num");
  if (num < 0 || num > (1 << 20)) {
    throw errors::InvalidArgument(fmt::format(
        "Unpack: num is {}; expected 0 to {}{}", num, 1 << 20, where_text()));
  }
  return static_cast<int>(num);
}

void infer_unpack(InferContext& c) {
  Shape out = c.shape(0);
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), out.rank(), "Unpack");
  if (out[axis] >= 0 && out[axis] != c.num_outputs()) {
    c.fail(fmt::format("num is {}; expected {}, the length of axis {} of {}",
                       c.num_outputs(), out[axis], axis, out.str()));
  }
  out.erase(axis);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.dtype(0), out);
}

std::vector<SplitSignature> split_unpack(const InferContext& c) {
  const int rank = c.shape(0).rank();
  const int axis = normalize_axis(c.attr<int64_t>("axis"), rank, "Unpack");
  std::vector<SplitSignature> rules;
  for (int i = 0; i < rank; ++i) {
    if (i == axis) continue;
    SplitSignature rule{{cut(i)}, {}};
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()),
                        cut(i < axis ? i : i - 1));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

void register_join_ops(OpRegistry& r) {
  r.op("ConcatV2")
      .variadic_input("values")
      .output("output")
      .required_attr("axis", int64_t{0})
      .infer(&infer_concat)
      .cost(&cost_move)
      .split(&split_concat)
      .gradient(&grad_concat);
  r.op("ConcatGrad")
      .input("dy")
      .variadic_input("parts")
      .output("dx")
      .required_attr("axis", int64_t{0})
      .required_attr("index", int64_t{0})
      .infer(&infer_concat_grad)
      .cost(&cost_pick)
      .split(&split_concat)
      .gradient(&grad_concat_grad)
      .doc("The part of dy that belongs to part `index`.");
  r.op("Pack")
      .variadic_input("values")
      .output("output")
      .attr("axis", int64_t{0})
      .infer(&infer_pack)
      .cost(&cost_move)
      .split(&split_pack)
      .gradient([](const GradCall& g) {
        const Tensor dy = g.dy();
        return call_many(op_of<"Unpack">(), {&dy},
                         AttrsRef({{"axis", g.attr<int64_t>("axis")},
                                   {"num", int64_t{g.num_inputs()}}})
                             .get());
      });
  r.op("Unpack")
      .input("value")
      .output("output")
      .num_outputs(&count_unpack)
      .attr("axis", int64_t{0})
      .required_attr("num", int64_t{0})
      .infer(&infer_unpack)
      .cost(&cost_move)
      .split(&split_unpack)
      .gradient([](const GradCall& g) {
        Tensors parts;
        const int64_t num = g.attr<int64_t>("num");
        for (int i = 0; i < num; ++i) parts.push_back(g.dy(i));
        if (parts.empty()) return Tensors{zeros_like(g.x(0), {})};
        return Tensors{stack(parts, g.attr<int64_t>("axis"), {})};
      });
}

}  // namespace berth
