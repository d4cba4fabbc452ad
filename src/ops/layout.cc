// Ops that rearrange elements: axes added, dropped, permuted, repeated, padded.

#include <fmt/format.h>

#include <algorithm>

#include "berth/ops/array.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

using Ints = std::vector<int64_t>;

Tensor expand_dims(const Tensor& x, int64_t axis, Site site) {
  return call_checked(op_of<"ExpandDims">(), site, {&x},
                      AttrsRef({{"axis", axis}}).get());
}
Tensor squeeze(const Tensor& x, const Ints& axes, Site site) {
  // Which axes go is settled here, where a length may be unknown: it stays.
  Ints dropped = axes;
  for (int i = 0; axes.empty() && i < x.rank(); ++i) {
    if (x.shape()[i] == 1) dropped.push_back(i);
  }
  if (dropped.empty()) return identity(x, site);
  return call_checked(op_of<"Squeeze">(), site, {&x},
                      AttrsRef({{"axis", dropped}}).get());
}
Tensor transpose(const Tensor& x, const Ints& perm, Site site) {
  Ints order = perm;
  if (order.empty()) {
    for (int i = x.rank() - 1; i >= 0; --i) order.push_back(i);
  }
  return call_checked(op_of<"Transpose">(), site, {&x},
                      AttrsRef({{"perm", order}}).get());
}
Tensor tile(const Tensor& x, const Ints& multiples, Site site) {
  return call_checked(op_of<"Tile">(), site, {&x},
                      AttrsRef({{"multiples", multiples}}).get());
}

namespace {

Tensors grad_reshape(const GradCall& g) {
  return {reshape_like(g.dy(), g.x(0))};
}

void infer_expand_dims(InferContext& c) {
  Shape shape = c.shape(0);
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), shape.rank() + 1, "ExpandDims");
  shape.insert(axis, 1);
  c.set_output(0, c.dtype(0), shape);
}

std::array<bool, kMaxRank> squeezed_axes(const InferContext& c) {
  const Shape& in = c.shape(0);
  std::array<bool, kMaxRank> dropped{};
  const Ints& axes = c.attr<Ints>("axis");
  for (int64_t a : axes) {
    const int axis = normalize_axis(a, in.rank(), "Squeeze");
    if (in[axis] >= 0 && in[axis] != 1) {
      c.fail(fmt::format("axis {} of {} has length {}; expected 1", a, in.str(),
                         in[axis]));
    }
    dropped[axis] = true;
  }
  for (int i = 0; axes.empty() && i < in.rank(); ++i) dropped[i] = in[i] == 1;
  return dropped;
}

void infer_squeeze(InferContext& c) {
  const auto dropped = squeezed_axes(c);
  Shape out;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (!dropped[i]) out.push_back(c.shape(0)[i]);
  }
  c.set_output(0, c.dtype(0), out);
}

// A cut of an axis keeps its bytes together only when all axes before it have
// length 1.
std::vector<SplitSignature> split_leading(const InferContext& c) {
  const Shape &in = c.shape(0), &out = c.output(0).shape;
  int i = 0, o = 0;
  while (i < in.rank() && in[i] == 1) ++i;
  while (o < out.rank() && out[o] == 1) ++o;
  if (i == in.rank() || o == out.rank() || in[i] != out[o]) return {};
  return {{{cut(i)}, {cut(o)}}};
}

void infer_transpose(InferContext& c) {
  const Shape& in = c.shape(0);
  const Ints& perm = c.attr<Ints>("perm");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int>(perm.size()) == in.rank();
  for (size_t i = 0; i < sorted.size(); ++i) {
    valid &= sorted[i] == static_cast<int64_t>(i);
  }
  if (!valid) {
    c.fail(fmt::format("perm is [{}]; expected each of 0 to {} once for {}",
                       fmt::join(perm, ","), in.rank() - 1, in.str()));
  }
  Shape out = in;
  for (int i = 0; i < in.rank(); ++i) out[i] = in[static_cast<int>(perm[i])];
  c.set_output(0, c.dtype(0), out);
}

Tensors grad_transpose(const GradCall& g) {
  const Ints perm = g.attr<Ints>("perm");
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[perm[i]] = static_cast<int64_t>(i);
  }
  return {
      call1(op_of<"Transpose">(), g.dy(), AttrsRef({{"perm", inverse}}).get())};
}

std::vector<SplitSignature> split_transpose(const InferContext& c) {
  const Ints& perm = c.attr<Ints>("perm");
  std::vector<SplitSignature> rules;
  for (size_t o = 0; o < perm.size(); ++o) {
    rules.push_back(
        {{cut(static_cast<int>(perm[o]))}, {cut(static_cast<int>(o))}});
  }
  return rules;
}

void infer_tile(InferContext& c) {
  Shape out = c.shape(0);
  const Ints& multiples = c.attr<Ints>("multiples");
  if (static_cast<int>(multiples.size()) != out.rank()) {
    c.fail(
        fmt::format("multiples has {} numbers; expected {}, one per axis of "
                    "{}",
                    multiples.size(), out.rank(), out.str()));
  }
  for (int i = 0; i < out.rank(); ++i) {
    if (multiples[i] < 0) {
      c.fail(
          fmt::format("multiple {} of axis {} is negative; expected 0 or "
                      "more",
                      multiples[i], i));
    }
    if (multiples[i] != 1) out[i] = multiply_dims(c, out[i], multiples[i]);
  }
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

// Axes that are not repeated.
std::vector<SplitSignature> split_tile(const InferContext& c) {
  const Ints& multiples = c.attr<Ints>("multiples");
  std::vector<SplitSignature> rules;
  for (size_t i = 0; i < multiples.size(); ++i) {
    if (multiples[i] != 1) continue;
    SplitSignature rule{{}, {cut(static_cast<int>(i))}};
    rule.inputs.assign(static_cast<size_t>(c.num_inputs()), rule.outputs[0]);
    rules.push_back(rule);
  }
  return rules;
}

void infer_tile_grad(InferContext& c) {
  const Ints& multiples = c.attr<Ints>("multiples");
  const Shape& dy = c.shape(0);
  const Shape shape = c.num_inputs() == 2 ? c.shape(1) : c.attr<Shape>("shape");
  bool valid = dy.rank() == shape.rank() &&
               static_cast<int>(multiples.size()) == dy.rank();
  for (int i = 0; valid && i < dy.rank(); ++i) {
    const int64_t want = multiply_dims(c, shape[i], multiples[i]);
    valid = multiples[i] >= 0 && (want < 0 || dy[i] < 0 || want == dy[i]);
  }
  if (!valid) {
    c.fail(fmt::format("{} is not {} tiled by [{}]", dy.str(), shape.str(),
                       fmt::join(multiples, ",")));
  }
  c.set_output(0, c.dtype(0), shape);
}

Tensors grad_tile(const GradCall& g) {
  const Tensor dy = g.dy();
  return {call_with_shape_of("TileGrad", {&dy}, g.x(0),
                             {{"multiples", g.attr<Ints>("multiples")}})};
}

Tensors grad_tile_grad(const GradCall& g) {
  Tensors grads(static_cast<size_t>(g.num_inputs()));
  grads[0] = tile(g.dy(), g.attr<Ints>("multiples"), {});
  return grads;
}

void register_tile_ops(OpRegistry& r) {
  r.op("Tile")
      .input("input")
      .output("output")
      .required_attr("multiples", Ints{})
      .infer(&infer_tile)
      .cost(&cost_move)
      .split(&split_tile)
      .gradient(&grad_tile);
  r.op("TileGrad")
      .input("dy", kEveryNumber)
      .output("dx")
      .required_attr("multiples", Ints{})
      .required_attr("shape", Shape{})
      .infer(&infer_tile_grad)
      .split(&split_tile)
      .gradient(&grad_tile_grad);
  r.op("TileGradLike")
      .input("dy", kEveryNumber)
      .free_input("like")
      .output("dx")
      .required_attr("multiples", Ints{})
      .infer(&infer_tile_grad)
      .split(&split_tile)
      .gradient(&grad_tile_grad);
}

}  // namespace

void register_layout_ops(OpRegistry& r) {
  r.op("ExpandDims")
      .input("input", kEveryType | kStringType)
      .output("output")
      .required_attr("axis", int64_t{0})
      .kind(OpKind::kAlias)
      .infer(&infer_expand_dims)
      .cost(&cost_nothing)
      .split(&split_leading)
      .gradient(&grad_reshape);
  r.op("Squeeze")
      .input("input", kEveryType | kStringType)
      .output("output")
      .attr("axis", Ints{})
      .kind(OpKind::kAlias)
      .infer(&infer_squeeze)
      .cost(&cost_nothing)
      .split(&split_leading)
      .gradient(&grad_reshape);
  r.op("Transpose")
      .input("x")
      .output("y")
      .attr("perm", Ints{})
      .infer(&infer_transpose)
      .cost(&cost_move)
      .split(&split_transpose)
      .gradient(&grad_transpose);
  register_tile_ops(r);
}

}  // namespace berth
