// One tensor split into several along an axis.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

using Ints = std::vector<int64_t>;

Tensors split(const Tensor& x, int64_t num, int64_t axis, Site site) {
  set_site(site);
  return call_many(op_of<"Split">(), {&x},
                   AttrsRef({{"num_split", num}, {"axis", axis}}).get());
}
Tensors split(const Tensor& x, const Ints& sizes, int64_t axis, Site site) {
  set_site(site);
  return call_many(op_of<"SplitV">(), {&x},
                   AttrsRef({{"size_splits", sizes}, {"axis", axis}}).get());
}

namespace {

constexpr int64_t kMostParts = 1 << 20;

int count_parts(const OpDef& op, const Attrs* attrs) {
  const int64_t num =
      op.name() == "Split"
          ? op.attr<int64_t>(attrs, "num_split")
          : static_cast<int64_t>(op.attr<Ints>(attrs, "size_splits").size());
  if (num < 1 || num > kMostParts) {
    throw errors::InvalidArgument(
        fmt::format("{}: into {} parts{}; expected 1 to {}", op.name(), num,
                    where_text(), kMostParts));
  }
  return static_cast<int>(num);
}

int split_axis(const InferContext& c) {
  return normalize_axis(c.attr<int64_t>("axis"), c.shape(0).rank(),
                        c.op().name().c_str());
}

void infer_split(InferContext& c) {
  Shape out = c.shape(0);
  const int axis = split_axis(c);
  if (c.num_outputs() > 1 && out[axis] >= 0) {
    if (out[axis] % c.num_outputs() != 0) {
      c.fail(
          fmt::format("axis {} of {} has length {}; expected a multiple of "
                      "{}, or a list of sizes",
                      axis, out.str(), out[axis], c.num_outputs()));
    }
    out[axis] /= c.num_outputs();
  } else if (c.num_outputs() > 1) {
    out[axis] = kUnknownDim;
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.dtype(0), out);
}

void infer_split_sizes(InferContext& c) {
  const Shape& in = c.shape(0);
  const int axis = split_axis(c);
  const Ints& sizes = c.attr<Ints>("size_splits");
  int64_t total = 0;
  int rest = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && rest < 0) {
      rest = static_cast<int>(i);
    } else if (sizes[i] < 0) {
      c.fail(fmt::format("sizes are [{}]; expected 0 or more, but for one -1",
                         fmt::join(sizes, ",")));
    } else {
      total = add_dims(c, total, sizes[i]);
    }
  }
  if (in[axis] >= 0 && (rest < 0 ? total != in[axis] : total > in[axis])) {
    c.fail(fmt::format("sizes [{}] do not add up to {}, axis {} of {}",
                       fmt::join(sizes, ","), in[axis], axis, in.str()));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    Shape out = in;
    out[axis] = i != rest       ? sizes[static_cast<size_t>(i)]
                : in[axis] >= 0 ? in[axis] - total
                                : kUnknownDim;
    c.set_output(i, c.dtype(0), out);
  }
}

// Every axis but the one that is split up.
std::vector<SplitSignature> split_of_split(const InferContext& c) {
  const int axis = split_axis(c);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (i == axis) continue;
    SplitSignature rule{{cut(i)}, {}};
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()), cut(i));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Tensors grad_split(const GradCall& g) {
  Tensors parts;
  const int num = g.op().num_outputs(g.attrs());
  for (int i = 0; i < num; ++i) parts.push_back(g.dy(i));
  return {concat(parts, g.attr<int64_t>("axis"), {})};
}

}  // namespace

void register_split_ops(OpRegistry& r) {
  for (const bool sizes : {false, true}) {
    OpBuilder op = r.op(sizes ? "SplitV" : "Split");
    op.input("value").output("output").num_outputs(&count_parts);
    if (sizes) {
      op.required_attr("size_splits", Ints{});
    } else {
      op.required_attr("num_split", int64_t{1});
    }
    op.attr("axis", int64_t{0})
        .infer(sizes ? &infer_split_sizes : &infer_split)
        .cost(&cost_move)
        .split(&split_of_split)
        .gradient(&grad_split);
  }
}

}  // namespace berth
