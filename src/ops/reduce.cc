// Reductions over axes.

#include "berth/ops/math.h"
#include "op/reduce_axes.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

void infer_reduce(InferContext& c) {
  const Shape& in = c.shape(0);
  const auto reduced = reduced_axes(c.op(), c.attrs(), in.rank());
  const bool keep = c.attr<bool>("keep_dims");
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[i]) {
      out.push_back(in[i]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  c.set_output(0, c.dtype(0), out);
}

// A kept axis is split; for sums, and means that know the count of the whole, a
// reduced one gives partial sums.
std::vector<SplitSignature> split_reduce(const InferContext& c) {
  const auto reduced = reduced_axes(c.op(), c.attrs(), c.shape(0).rank());
  const bool keep = c.attr<bool>("keep_dims");
  std::vector<SplitSignature> rules;
  int out = 0;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (!reduced[i]) {
      rules.push_back({{static_cast<int8_t>(i)}, {static_cast<int8_t>(out)}});
    } else if (c.op().name() == "Sum" || c.op().name() == "Mean") {
      rules.push_back(
          {{static_cast<int8_t>(i)}, {SplitSignature::kPartialSum}});
    }
    if (!reduced[i] || keep) ++out;
  }
  return rules;
}

Cost cost_reduce(const InferContext& c) {
  const double n = static_cast<double>(c.shape(0).num_elements());
  return {n, n * static_cast<double>(size_of(c.dtype(0)))};
}

// Puts 1s where axes were reduced, so that `t` broadcasts against x.
Tensor with_kept_axes(const GradCall& g, const Tensor& t) {
  if (g.attr<bool>("keep_dims")) return t;
  const Shape& x = g.x(0).shape();
  const auto reduced = reduced_axes(g.op(), g.attrs(), x.rank());
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) shape.push_back(reduced[i] ? 1 : x[i]);
  return call1(op_of<"Reshape">(), t, AttrsRef({{"shape", shape}}).get());
}

Tensors grad_sum(const GradCall& g) {
  return {broadcast_like(with_kept_axes(g, g.dy()), g.x(0))};
}

Tensors grad_mean(const GradCall& g) {
  return {broadcast_like(with_kept_axes(g, g.dy() * size_ratio(g.y(), g.x(0))),
                         g.x(0))};
}

// Shared equally by the elements that reach the extreme (TensorFlow's rule).
Tensors grad_extreme(const GradCall& g) {
  const Tensor y = with_kept_axes(g, g.y());
  const Tensor hit = math::cast(math::equal(g.x(0), y, {}), g.x(0).dtype(), {});
  std::vector<int64_t> axes;
  const auto reduced = reduced_axes(g.op(), g.attrs(), g.x(0).rank());
  for (int i = 0; i < g.x(0).rank(); ++i) {
    if (reduced[i]) axes.push_back(i);
  }
  const Tensor count =
      call1(op_of<"Sum">(), hit,
            AttrsRef({{"axis", axes}, {"keep_dims", true}}).get());
  return {hit / count * with_kept_axes(g, g.dy())};
}

// The product of the other elements along an axis: of those before times those
// after. A quotient would lose zeros.
Tensor product_of_others(const Tensor& x, int axis) {
  return math::cumprod(x, {.axis = axis, .exclusive = true}, {}) *
         math::cumprod(x, {.axis = axis, .exclusive = true, .reverse = true},
                       {});
}

// By a quotient, which is wrong beyond the first order where factors are 0.
Tensors grad_complex_prod(const GradCall& g, const std::vector<int64_t>& axes) {
  const Tensor& x = g.x(0);
  const DType d = x.dtype();
  const AttrsRef keep({{"axis", axes}, {"keep_dims", true}});
  const Tensor zero = math::cast(math::equal(x, scalar_like(x, 0), {}), d, {});
  const Tensor filled = x + zero;  // zeros become 1
  const Tensor others = call1(op_of<"Prod">(), filled, keep.get());
  const Tensor zeros = call1(op_of<"Sum">(), zero, keep.get());
  auto is = [&](const Tensor& count, double n) {
    return math::cast(math::equal(count, scalar_like(count, n), {}), d, {});
  };
  // No zero: others / x. One zero: only that element has a share.
  const Tensor share =
      is(zeros, 0) * (others / filled) + is(zeros, 1) * zero * others;
  return {math::conj(share, {}) * with_kept_axes(g, g.dy())};
}

// Axis by axis: the product over several is one of products.
Tensors grad_prod(const GradCall& g) {
  const auto reduced = reduced_axes(g.op(), g.attrs(), g.x(0).rank());
  std::vector<int> axes;
  Tensors partial{g.x(0)};  // partial[i]: reduced over the axes before i
  for (int axis = 0; axis < g.x(0).rank(); ++axis) {
    if (!reduced[axis]) continue;
    if (!axes.empty()) {
      partial.push_back(math::reduce_prod(
          partial.back(), {.axis = {{axes.back()}}, .keepdims = true}, {}));
    }
    axes.push_back(axis);
  }
  if (is_complex(g.x(0).dtype())) {
    return grad_complex_prod(g, {axes.begin(), axes.end()});
  }
  Tensor d = with_kept_axes(g, g.dy());
  for (size_t i = axes.size(); i-- > 0;) {
    d = d * product_of_others(partial[i], axes[i]);
  }
  return {d};
}

int arg_axis(const InferContext& c) {
  return normalize_axis(c.attr<int64_t>("axis"), c.shape(0).rank(),
                        c.op().name().c_str());
}

void infer_arg(InferContext& c) {
  Shape shape = c.shape(0);
  const int axis = arg_axis(c);
  if (shape[axis] == 0) {
    c.fail("the axis is empty; expected at least one element");
  }
  shape.erase(axis);
  c.set_output(0, c.attr<DType>("output_type"), shape);
}

std::vector<SplitSignature> split_arg(const InferContext& c) {
  const int axis = arg_axis(c);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (i == axis) continue;
    rules.push_back({{static_cast<int8_t>(i)},
                     {static_cast<int8_t>(i < axis ? i : i - 1)}});
  }
  return rules;
}

void reduction(OpRegistry& r, const char* name, DTypeSet types,
               GradientFn gradient) {
  auto op = std::make_unique<OpBuilder>(&r, name);
  op->input("input", types)
      .output("output")
      .attr("axis", std::vector<int64_t>{})
      .attr("all_axes", false)
      .attr("keep_dims", false)
      .infer(&infer_reduce)
      .cost(&cost_reduce)
      .split(&split_reduce);
  if (gradient) {
    op->gradient(gradient);
  } else {
    op->not_differentiable();
  }
}

Tensor reduce(const OpDef& op, const Tensor& x,
              const math::ReduceOptions& options, Site site) {
  set_site(site);
  std::vector<Attrs::Pair> attrs;
  if (options.axis) {
    attrs.push_back({"axis", *options.axis});
  } else {
    attrs.push_back({"all_axes", true});
  }
  if (options.keepdims) attrs.push_back({"keep_dims", true});
  return call1(op, x, AttrsRef(std::move(attrs)).get());
}

}  // namespace

namespace math {

Tensor reduce_sum(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"Sum">(), x, o, site);
}
Tensor reduce_mean(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"Mean">(), x, o, site);
}
Tensor reduce_max(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"Max">(), x, o, site);
}
Tensor reduce_min(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"Min">(), x, o, site);
}
Tensor reduce_prod(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"Prod">(), x, o, site);
}
Tensor reduce_all(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"All">(), x, o, site);
}
Tensor reduce_any(const Tensor& x, const ReduceOptions& o, Site site) {
  return reduce(op_of<"Any">(), x, o, site);
}
Tensor argmax(const Tensor& x, int64_t axis, Site site) {
  return unary<"ArgMax">(x, site, AttrsRef({{"axis", axis}}).get());
}
Tensor argmin(const Tensor& x, int64_t axis, Site site) {
  return unary<"ArgMin">(x, site, AttrsRef({{"axis", axis}}).get());
}

}  // namespace math

void register_reduce_ops(OpRegistry& r) {
  reduction(r, "Sum", kEveryNumber, &grad_sum);
  reduction(r, "Mean", kInexactTypes, &grad_mean);
  reduction(r, "Max", kRealNumbers, &grad_extreme);
  reduction(r, "Min", kRealNumbers, &grad_extreme);
  reduction(r, "Prod", kEveryNumber, &grad_prod);
  reduction(r, "All", kBoolType, nullptr);
  reduction(r, "Any", kBoolType, nullptr);
  for (const char* name : {"ArgMax", "ArgMin"}) {
    r.op(name)
        .input("input", kRealNumbers)
        .output("output")
        .attr("axis", int64_t{0})
        .attr("output_type", int64)
        .infer(&infer_arg)
        .cost(&cost_reduce)
        .split(&split_arg)
        .not_differentiable();
  }
}

}  // namespace berth
