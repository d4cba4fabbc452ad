// Running sums and products along an axis, and the recurrence that their
// gradients are made of.

#include <fmt/format.h>

#include <limits>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

AttrsRef scan_attrs(int64_t axis, bool exclusive, bool reverse) {
  return AttrsRef(
      {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
}

AttrsRef scan_attrs(const math::ScanOptions& o) {
  return scan_attrs(o.axis, o.exclusive, o.reverse);
}

}  // namespace

namespace math {

Tensor cumsum(const Tensor& x, const ScanOptions& options, Site site) {
  return unary<"Cumsum">(x, site, scan_attrs(options).get());
}
Tensor cumprod(const Tensor& x, const ScanOptions& options, Site site) {
  return unary<"Cumprod">(x, site, scan_attrs(options).get());
}
Tensor cumulative_logsumexp(const Tensor& x, const ScanOptions& options,
                            Site site) {
  return unary<"CumulativeLogsumexp">(x, site, scan_attrs(options).get());
}

}  // namespace math

namespace {

int axis_of(const InferContext& c) {
  const int rank = c.shape(0).rank();
  if (rank == 0) {
    c.fail(fmt::format("{} is a scalar; expected an axis to run along",
                       c.op().input(0).name));
  }
  return normalize_axis(c.attr<int64_t>("axis"), rank, c.op().name().c_str());
}

void infer_scan(InferContext& c) {
  axis_of(c);
  infer_same_as_0(c);
}

void infer_recurrence(InferContext& c) {
  const int axis = axis_of(c);
  Shape out = c.shape(0);
  const Shape& b = c.shape(1);
  if (!out.compatible_with(b)) {
    c.fail(fmt::format("a is {}, b is {}; expected equal shapes", out.str(),
                       b.str()));
  }
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] < 0) out[i] = b[i];
  }
  if (c.num_inputs() == 3) {
    const Shape& ids = c.shape(2);
    if (ids.rank() != 1 || !ids.compatible_with(Shape{out[axis]})) {
      c.fail(
          fmt::format("the segments are {}; expected [{}], one per place of "
                      "axis {} of {}",
                      ids.str(), out[axis], axis, out.str()));
    }
  }
  if (c.attr<bool>("exclusive") && c.attr<bool>("previous")) {
    c.fail(fmt::format(
        "exclusive and previous are set (axis {}); expected at most one",
        axis));
  }
  c.set_output(0, c.dtype(0), out);
}

// Every axis but the one along which elements depend on each other.
std::vector<SplitSignature> split_scan(const InferContext& c) {
  const int axis = axis_of(c);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (i == axis) continue;
    SplitSignature rule;
    rule.inputs.assign(static_cast<size_t>(c.num_inputs()), cut(i));
    if (c.num_inputs() == 3) rule.inputs[2] = kWhole;  // segments
    rule.outputs = {cut(i)};
    rules.push_back(std::move(rule));
  }
  return rules;
}

Cost cost_scan(const InferContext& c) {
  const double n = static_cast<double>(c.shape(0).num_elements());
  const double arrays = c.num_inputs() + 1;
  return {c.num_inputs() * n,
          arrays * n * static_cast<double>(size_of(c.dtype(0)))};
}

Tensors grad_cumsum(const GradCall& g) {
  const AttrsRef back =
      scan_attrs(g.attr<int64_t>("axis"), g.attr<bool>("exclusive"),
                 !g.attr<bool>("reverse"));
  return {unary<"Cumsum">(g.dy(), {}, back.get())};
}

// Where a recurrence of gradients stands in the family (see LinearRecurrence).
enum class Step { kOwn, kPrevious, kExclusive };

// The recurrence per segment where `segments` is a tensor.
Tensor recurrence(const Tensor& a, const Tensor& b, const Tensor& segments,
                  int64_t axis, bool reverse, Step step) {
  const AttrsRef attrs({{"axis", axis},
                        {"reverse", reverse},
                        {"previous", step == Step::kPrevious},
                        {"exclusive", step == Step::kExclusive}});
  if (!segments.defined()) {
    return binary<"LinearRecurrence">(a, b, {}, attrs.get());
  }
  return call1(op_of<"SegmentRecurrence">(), {&a, &b, &segments}, attrs.get());
}

// An element's share is the product of those before it, times the gradients
// after it, each times the elements between: no division, so zeros are
// elements like any other.
Tensors grad_cumprod(const GradCall& g) {
  const auto axis = g.attr<int64_t>("axis");
  const bool exclusive = g.attr<bool>("exclusive");
  const bool reverse = g.attr<bool>("reverse");
  const Tensor before =
      exclusive
          ? g.y()
          : unary<"Cumprod">(g.x(0), {}, scan_attrs(axis, true, reverse).get());
  const Tensor behind =
      recurrence(g.x(0), g.dy(), {}, axis, !reverse,
                 exclusive ? Step::kExclusive : Step::kPrevious);
  return {before * behind};
}

// sum of dy_j exp(x_i - y_j) over the j after i, for the positive and the
// negative dy as logarithms, as TensorFlow does: nothing overflows.
Tensors grad_cumulative_logsumexp(const GradCall& g) {
  const AttrsRef back =
      scan_attrs(g.attr<int64_t>("axis"), g.attr<bool>("exclusive"),
                 !g.attr<bool>("reverse"));
  const Tensor dy = g.dy(), none = scalar_like(dy, -1e30);
  const Tensor one = scalar_like(dy, 1);
  // -inf stands where there is nothing to add, and nothing depends on it.
  const Tensor nothing =
      scalar_like(dy, -std::numeric_limits<double>::infinity());
  const Tensor y =
      where(math::equal(g.y(), nothing, {}), scalar_like(dy, 0), g.y(), {});
  const auto share = [&](const Tensor& size) {
    const Tensor some = size > 0.0;
    const Tensor log = math::log(where(some, size, one, {}), {});
    const Tensor kept = where(some, log - y, none, {});
    const Tensor sum = unary<"CumulativeLogsumexp">(kept, {}, back.get());
    return math::exp(sum + g.x(0), {});
  };
  return {share(dy) - share(-dy)};
}

Tensors grad_recurrence(const GradCall& g) {
  const auto axis = g.attr<int64_t>("axis");
  const bool reverse = g.attr<bool>("reverse");
  const Tensor &a = g.x(0), &b = g.x(1), dy = g.dy();
  Tensors d(static_cast<size_t>(g.num_inputs()));
  const Tensor segments = d.size() == 3 ? g.x(2) : Tensor();
  if (g.attr<bool>("exclusive")) {
    const Tensor back =
        recurrence(a, dy, segments, axis, !reverse, Step::kExclusive);
    if (g.needs(0)) d[0] = back * g.y();
    d[1] = back;
  } else if (g.attr<bool>("previous")) {
    if (g.needs(0)) {
      d[0] =
          g.y() * recurrence(a, dy, segments, axis, !reverse, Step::kExclusive);
    }
    if (g.needs(1)) {
      d[1] = recurrence(a, dy, segments, axis, !reverse, Step::kOwn);
    }
  } else {
    const Tensor back =
        recurrence(a, dy, segments, axis, !reverse, Step::kPrevious);
    if (g.needs(0)) {
      d[0] = back * recurrence(a, b, segments, axis, reverse, Step::kExclusive);
    }
    d[1] = back;
  }
  return d;
}

void scan(OpRegistry& r, const char* name, DTypeSet types, GradientFn gradient,
          const char* doc) {
  r.op(name)
      .input("x", types)
      .output("out")
      .attr("axis", int64_t{0})
      .attr("exclusive", false)
      .attr("reverse", false)
      .infer(&infer_scan)
      .cost(&cost_scan)
      .split(&split_scan)
      .gradient(gradient)
      .doc(doc);
}

}  // namespace

void register_scan_ops(OpRegistry& r) {
  scan(r, "Cumsum", kEveryNumber, &grad_cumsum,
       "Sums of the elements up to each along an axis.");
  scan(r, "Cumprod", kRealNumbers, &grad_cumprod,
       "Products of the elements up to each along an axis.");
  scan(r, "CumulativeLogsumexp", kRealFloats, &grad_cumulative_logsumexp,
       "log(sum(exp(x))) of the elements up to each along an axis.");
  for (const bool segments : {false, true}) {
    OpBuilder op = r.op(segments ? "SegmentRecurrence" : "LinearRecurrence");
    op.input("a", kRealFloats).input("b", kRealFloats);
    if (segments) op.free_input("segment_ids", kIndexTypes);
    op.output("out")
        .attr("axis", int64_t{0})
        .attr("reverse", false)
        .attr("previous", false)
        .attr("exclusive", false)
        .infer(&infer_recurrence)
        .cost(&cost_scan)
        .split(&split_scan)
        .gradient(&grad_recurrence)
        .doc(segments
                 ? "LinearRecurrence that begins anew where the id of the "
                   "place differs from that of the place before."
                 : "s[i] = a[i] * s[i-1] + b[i] along an axis, s[-1] = 0. "
                   "previous: a[i-1] in place of a[i]. exclusive: s[i-1] is "
                   "the result. Its gradients are such recurrences in the "
                   "other direction.");
  }
}

}  // namespace berth
