// Elements in other places along their axes: padded, mirrored, reversed,
// rolled. Each op maps every axis by itself.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

using Ints = std::vector<int64_t>;

Tensor pad(const Tensor& x, const Ints& paddings, const PadOptions& o,
           Site site) {
  if (o.mode != "CONSTANT") {
    return call_checked(
        op_of<"MirrorPad">(), site, {&x},
        AttrsRef({{"paddings", paddings}, {"mode", o.mode}}).get());
  }
  if (o.constant_values == 0) {
    return call_checked(op_of<"Pad">(), site, {&x},
                        AttrsRef({{"paddings", paddings}}).get());
  }
  return call_checked(
      op_of<"PadV2">(), site, {&x},
      AttrsRef({{"paddings", paddings}, {"constant_values", o.constant_values}})
          .get());
}
Tensor reverse(const Tensor& x, const Ints& axes, Site site) {
  return call_checked(op_of<"ReverseV2">(), site, {&x},
                      AttrsRef({{"axis", axes}}).get());
}
Tensor roll(const Tensor& x, const Ints& shift, const Ints& axes, Site site) {
  return call_checked(op_of<"Roll">(), site, {&x},
                      AttrsRef({{"shift", shift}, {"axis", axes}}).get());
}

namespace {

void check_paddings(const InferContext& c) {
  const Ints& paddings = c.attr<Ints>("paddings");
  const int rank = c.shape(0).rank();
  if (static_cast<int>(paddings.size()) != 2 * rank) {
    c.fail(
        fmt::format("paddings has {} numbers; expected {}, before and after "
                    "each axis of {}",
                    paddings.size(), 2 * rank, c.shape(0).str()));
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
    if (before < 0 || after < 0) {
      c.fail(fmt::format("paddings {}, {} of axis {}; expected 0 or more",
                         before, after, i));
    }
  }
}

void infer_pad(InferContext& c) {
  check_paddings(c);
  Shape out = c.shape(0);
  const Ints& paddings = c.attr<Ints>("paddings");
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
    if (before == 0 && after == 0) continue;
    out[i] = add_dims(c, out[i], add_dims(c, before, after));
  }
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

void infer_pad_value(InferContext& c) {
  check_value(c, "the value", c.attr<double>("constant_values"), c.dtype(0));
  infer_pad(c);
}

// How many elements a mirror of an axis of `dim` can show.
int64_t mirrored(const InferContext& c, int64_t dim) {
  const std::string& mode = c.attr<std::string>("mode");
  if (mode == "SYMMETRIC") return dim;
  if (mode == "REFLECT") return dim - 1;
  c.fail(fmt::format(
      "mode is '{}'; expected 'CONSTANT', 'REFLECT' or 'SYMMETRIC'", mode));
}

void check_mirrors(const InferContext& c, const Shape& shape) {
  const Ints& paddings = c.attr<Ints>("paddings");
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t before = paddings[2 * i], after = paddings[2 * i + 1];
    const int64_t most = mirrored(c, shape[i]);
    if (shape[i] < 0 || (before == 0 && after == 0)) continue;
    if (before > most || after > most) {
      c.fail(
          fmt::format("paddings {}, {} of axis {}; expected at most {}, what "
                      "mode {} sees of {}",
                      before, after, i, std::max<int64_t>(most, 0),
                      c.attr<std::string>("mode"), shape.str()));
    }
  }
}

void infer_mirror_pad(InferContext& c) {
  infer_pad(c);
  check_mirrors(c, c.shape(0));
}

void infer_mirror_pad_grad(InferContext& c) {
  check_paddings(c);
  const Ints& paddings = c.attr<Ints>("paddings");
  Shape out = c.shape(0);
  for (int i = 0; i < out.rank(); ++i) {
    const int64_t both = add_dims(c, paddings[2 * i], paddings[2 * i + 1]);
    if (both == 0 || out[i] < 0) continue;
    if (both > out[i]) {
      c.fail(fmt::format("axis {} of dy {} is shorter than its paddings {}", i,
                         c.shape(0).str(), both));
    }
    out[i] -= both;
  }
  for (int i = 0; i < out.rank(); ++i) {
    const bool padded = paddings[2 * i] != 0 || paddings[2 * i + 1] != 0;
    if (padded && c.shape(0)[i] < 0) out[i] = kUnknownDim;
  }
  check_mirrors(c, out);
  c.set_output(0, c.dtype(0), out);
}

std::vector<SplitSignature> split_pad(const InferContext& c) {
  const Ints& paddings = c.attr<Ints>("paddings");
  std::vector<SplitSignature> rules;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (paddings[2 * i] == 0 && paddings[2 * i + 1] == 0) {
      rules.push_back({{cut(i)}, {cut(i)}});
    }
  }
  return rules;
}

// The inside of dy: from `before` to `after` before the end of each axis, so
// that the sizes need not be known.
Tensors grad_pad(const GradCall& g) {
  const Ints paddings = g.attr<Ints>("paddings");
  Ints begin, end, strides;
  int64_t end_mask = 0;
  for (int i = 0; i < g.x(0).rank(); ++i) {
    begin.push_back(paddings[2 * i]);
    end.push_back(-paddings[2 * i + 1]);
    strides.push_back(1);
    if (end.back() == 0) end_mask |= int64_t{1} << i;
  }
  return {call1(op_of<"StridedSlice">(), g.dy(),
                AttrsRef({{"begin", begin},
                          {"end", end},
                          {"strides", strides},
                          {"end_mask", end_mask}})
                    .get())};
}

// MirrorPad and its gradient are each other's adjoint.
template <bool kGrad>
Tensors grad_mirror(const GradCall& g) {
  static const OpDef& op = op_named(kGrad ? "MirrorPad" : "MirrorPadGrad");
  return {call1(op, g.dy(),
                AttrsRef({{"paddings", g.attr<Ints>("paddings")},
                          {"mode", g.attr<std::string>("mode")}})
                    .get())};
}

std::array<bool, kMaxRank> named_axes(const InferContext& c) {
  std::array<bool, kMaxRank> named{};
  for (const int64_t a : c.attr<Ints>("axis")) {
    named[normalize_axis(a, c.shape(0).rank(), c.op().name().c_str())] = true;
  }
  return named;
}

std::vector<SplitSignature> split_other_axes(const InferContext& c) {
  const auto named = named_axes(c);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (!named[i]) rules.push_back({{cut(i)}, {cut(i)}});
  }
  return rules;
}

void infer_reverse(InferContext& c) {
  const auto named = named_axes(c);
  size_t different = 0;
  for (const bool n : named) different += n;
  if (different != c.attr<Ints>("axis").size()) {
    c.fail(fmt::format("axis [{}] names one twice; expected each once",
                       fmt::join(c.attr<Ints>("axis"), ",")));
  }
  infer_same_as_0(c);
}

void infer_roll(InferContext& c) {
  const Ints &shift = c.attr<Ints>("shift"), &axis = c.attr<Ints>("axis");
  (void)named_axes(c);
  if (shift.size() != axis.size()) {
    c.fail(fmt::format("shift has {} numbers, axis has {}; expected as many",
                       shift.size(), axis.size()));
  }
  for (const int64_t s : shift) {
    if (s == INT64_MIN) c.fail(fmt::format("shift {} has no negative", s));
  }
  infer_same_as_0(c);
}

Tensors grad_roll(const GradCall& g) {
  Ints back = g.attr<Ints>("shift");
  for (int64_t& s : back) s = -s;
  return {roll(g.dy(), back, g.attr<Ints>("axis"), {})};
}

void register_mirror_ops(OpRegistry& r) {
  r.op("MirrorPad")
      .input("input")
      .output("output")
      .required_attr("paddings", Ints{})
      .required_attr("mode", std::string())
      .infer(&infer_mirror_pad)
      .cost(&cost_move)
      .split(&split_pad)
      .gradient(&grad_mirror<false>);
  r.op("MirrorPadGrad")
      .input("dy", kRealNumbers)
      .output("dx")
      .required_attr("paddings", Ints{})
      .required_attr("mode", std::string())
      .infer(&infer_mirror_pad_grad)
      .cost(&cost_move)
      .split(&split_pad)
      .gradient(&grad_mirror<true>)
      .doc("Adds each element of dy to the one that it mirrors.");
}

}  // namespace

void register_rearrange_ops(OpRegistry& r) {
  r.op("Pad")
      .input("input")
      .output("output")
      .required_attr("paddings", Ints{})
      .infer(&infer_pad)
      .cost(&cost_move)
      .split(&split_pad)
      .gradient(&grad_pad);
  r.op("PadV2")
      .input("input")
      .output("output")
      .required_attr("paddings", Ints{})
      .attr("constant_values", 0.0)
      .infer(&infer_pad_value)
      .cost(&cost_move)
      .split(&split_pad)
      .gradient(&grad_pad);
  register_mirror_ops(r);
  r.op("ReverseV2")
      .input("tensor")
      .output("output")
      .required_attr("axis", Ints{})
      .infer(&infer_reverse)
      .cost(&cost_move)
      .split(&split_other_axes)
      .gradient([](const GradCall& g) {
        return Tensors{reverse(g.dy(), g.attr<Ints>("axis"), {})};
      });
  r.op("Roll")
      .input("input")
      .output("output")
      .required_attr("shift", Ints{})
      .required_attr("axis", Ints{})
      .infer(&infer_roll)
      .cost(&cost_move)
      .split(&split_other_axes)
      .gradient(&grad_roll);
}

}  // namespace berth
