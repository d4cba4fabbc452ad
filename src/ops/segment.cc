// Rows grouped by ids: unsorted and sorted segments, bincount, histograms.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"
#include "ops/families.h"

namespace berth {

namespace {

Tensor unsorted(const char* op, const Tensor& data, const Tensor& ids,
                int64_t num, Site site) {
  return call_checked(op_named(op), site, {&data, &ids},
                      AttrsRef({{"num_segments", num}}).get());
}

// `t` [...] with as many axes of length 1 after as `like` has more.
Tensor with_rank_of(Tensor t, const Tensor& like) {
  while (t.rank() < like.rank()) t = expand_dims(t, -1, {});
  return t;
}

// How many elements each segment has, to divide or compare with `result`.
Tensor counts(const Tensor& ids, int64_t num, const Tensor& result) {
  const Tensor n = unsorted("UnsortedSegmentSum",
                            ones_like(math::cast(ids, result.dtype(), {}), {}),
                            ids, num, {});
  return with_rank_of(n, result);
}

// The number of segments of ids in ascending order.
int64_t count_segments(const char* what, const Tensor& ids,
                       const SegmentOptions& o, Site site) {
  set_site(site);
  if (o.num_segments) return *o.num_segments;
  if (ids.is_symbolic() || tracing()) {
    refuse<Untraceable<errors::InvalidArgument>>(
        what,
        "the number of segments depends on values, which a traced function "
        "does not have; expected num_segments");
  }
  const std::vector<int64_t> all = ids.to_vector<int64_t>();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] >= (i == 0 ? 0 : all[i - 1])) continue;
    refuse(what,
           fmt::format("segment id {} at place {} is smaller than the one "
                       "before it; expected ascending ids from 0 on, or "
                       "write unsorted_{}",
                       all[i], i, what));
  }
  return all.empty() ? 0 : all.back() + 1;
}

// The extreme of each segment, 0 for empty ones.
Tensor extreme(const char* what, const char* op, const Tensor& data,
               const Tensor& ids, const SegmentOptions& o, Site site) {
  const int64_t num = count_segments(what, ids, o, site);
  const Tensor y = unsorted(op, data, ids, num, site);
  return where(math::greater(counts(ids, num, y), scalar_like(y, 0), {}), y,
               scalar_like(y, 0), {});
}

}  // namespace

Tensor unsorted_segment_sum(const Tensor& data, const Tensor& ids, int64_t num,
                            Site site) {
  return unsorted("UnsortedSegmentSum", data, ids, num, site);
}
Tensor unsorted_segment_prod(const Tensor& data, const Tensor& ids, int64_t num,
                             Site site) {
  return unsorted("UnsortedSegmentProd", data, ids, num, site);
}
Tensor unsorted_segment_min(const Tensor& data, const Tensor& ids, int64_t num,
                            Site site) {
  return unsorted("UnsortedSegmentMin", data, ids, num, site);
}
Tensor unsorted_segment_max(const Tensor& data, const Tensor& ids, int64_t num,
                            Site site) {
  return unsorted("UnsortedSegmentMax", data, ids, num, site);
}
Tensor unsorted_segment_mean(const Tensor& data, const Tensor& ids, int64_t num,
                             Site site) {
  const Tensor sum = unsorted_segment_sum(data, ids, num, site);
  return sum / math::maximum(counts(ids, num, sum), scalar_like(sum, 1), {});
}
Tensor segment_sum(const Tensor& data, const Tensor& ids,
                   const SegmentOptions& o, Site site) {
  return unsorted_segment_sum(
      data, ids, count_segments("segment_sum", ids, o, site), site);
}
Tensor segment_mean(const Tensor& data, const Tensor& ids,
                    const SegmentOptions& o, Site site) {
  return unsorted_segment_mean(
      data, ids, count_segments("segment_mean", ids, o, site), site);
}
Tensor segment_prod(const Tensor& data, const Tensor& ids,
                    const SegmentOptions& o, Site site) {
  return unsorted_segment_prod(
      data, ids, count_segments("segment_prod", ids, o, site), site);
}
Tensor segment_min(const Tensor& data, const Tensor& ids,
                   const SegmentOptions& o, Site site) {
  return extreme("segment_min", "UnsortedSegmentMin", data, ids, o, site);
}
Tensor segment_max(const Tensor& data, const Tensor& ids,
                   const SegmentOptions& o, Site site) {
  return extreme("segment_max", "UnsortedSegmentMax", data, ids, o, site);
}

Tensor bincount(const Tensor& x, const BincountOptions& o, Site site) {
  set_site(site);
  if (!(kIndexTypes & dtype_bit(x.dtype()))) {
    refuse("bincount",
           fmt::format("x is {}; expected int32 or int64", name_of(x.dtype())));
  }
  const Tensor weights =
      o.weights.defined() ? o.weights : ones_like(math::cast(x, o.dtype, {}));
  Tensor ids = x;
  int64_t num = 0;
  if (x.is_symbolic() || tracing()) {
    if (!o.maxlength) {
      refuse<Untraceable<errors::InvalidArgument>>(
          "bincount",
          "the largest number is not known in a trace; expected maxlength");
    }
    num = *o.maxlength;
  } else {
    num = o.minlength;
    for (const int64_t v : x.to_vector<int64_t>()) {
      if (v < 0) {
        refuse("bincount", fmt::format("x holds {}; expected 0 or more", v));
      }
      num = std::max(num, v == INT64_MAX ? v : v + 1);
    }
    if (o.maxlength) num = std::min(num, *o.maxlength);
  }
  // Those beyond it are dropped; an int32 holds none beyond a larger one.
  if (o.maxlength && (x.dtype() == int64 || *o.maxlength <= INT32_MAX)) {
    const Tensor most = scalar_like(x, static_cast<double>(*o.maxlength));
    ids = where(math::less(x, most, {}), x, scalar_like(x, -1), {});
  }
  return unsorted_segment_sum(weights, ids, num, site);
}

Tensor histogram_fixed_width(const Tensor& values, double low, double high,
                             int64_t nbins, Site site) {
  set_site(site);
  if (!(low < high) || !std::isfinite(high - low) || nbins < 1 ||
      nbins > INT32_MAX) {
    refuse("histogram_fixed_width",
           fmt::format("{} parts of [{}, {}]; expected finite low < high and "
                       "at least 1 part",
                       nbins, low, high));
  }
  const Tensor parts = (math::cast(values, float64, {}) - low) *
                       (static_cast<double>(nbins) / (high - low));
  const Tensor last = scalar_like(parts, static_cast<double>(nbins - 1));
  const Tensor zero = scalar_like(parts, 0);
  const Tensor inside = math::minimum(math::maximum(parts, zero, {}), last, {});
  // NaN counts nowhere.
  const Tensor ids =
      where(math::equal(parts, parts, {}),
            math::cast(where(math::equal(parts, parts, {}), inside, zero, {}),
                       int32, {}),
            constant(-1), {});
  return unsorted_segment_sum(ones_like(ids, {}), ids, nbins, site);
}

namespace {

void infer_segment(InferContext& c) {
  const Shape &data = c.shape(0), &ids = c.shape(1);
  bool fits = ids.rank() <= data.rank();
  for (int i = 0; fits && i < ids.rank(); ++i) {
    fits = ids[i] < 0 || data[i] < 0 || ids[i] == data[i];
  }
  if (!fits) {
    c.fail(
        fmt::format("the ids are {}, the data {}; expected a shape that the "
                    "data's begins with",
                    ids.str(), data.str()));
  }
  const int64_t num = c.attr<int64_t>("num_segments");
  if (num < 0) {
    c.fail(fmt::format("num_segments is {}; expected 0 or more", num));
  }
  Shape out{num};
  for (int i = ids.rank(); i < data.rank(); ++i) out.push_back(data[i]);
  check_elements(c, out);
  c.set_output(0, c.dtype(0), out);
}

// Axes of the rows; for sums some of the ids give partial sums.
std::vector<SplitSignature> split_segment(const InferContext& c) {
  const int n = c.shape(1).rank();
  std::vector<SplitSignature> rules;
  if (c.op().name() == "UnsortedSegmentSum") {
    for (int i = 0; i < n; ++i) {
      rules.push_back({{cut(i), cut(i)}, {kPartialSum}});
    }
  }
  for (int i = n; i < c.shape(0).rank(); ++i) {
    rules.push_back({{cut(i), kWhole}, {cut(1 + i - n)}});
  }
  return rules;
}

// Row ids[i] of `rows` for each i; zeros for dropped ids.
Tensor rows_at(const Tensor& rows, const Tensor& ids, const Tensor& data) {
  const Tensor zero = scalar_like(ids, 0);
  const Tensor taken = gather(rows, math::maximum(ids, zero, {}), 0, {});
  const Tensor kept = with_rank_of(math::greater_equal(ids, zero, {}), data);
  return where(kept, taken, scalar_like(rows, 0), {});
}

Tensors grad_segment_sum(const GradCall& g) {
  // With no segment every id is dropped, and there is no row to take.
  if (g.attr<int64_t>("num_segments") == 0) return {zeros_like(g.x(0), {}), {}};
  return {rows_at(g.dy(), g.x(1), g.x(0)), {}};
}

// Shared equally by all that reach the extreme.
Tensors grad_segment_extreme(const GradCall& g) {
  const Tensor &data = g.x(0), &ids = g.x(1);
  const int64_t num = g.attr<int64_t>("num_segments");
  if (num == 0) return {zeros_like(data, {}), {}};
  const Tensor zero = scalar_like(ids, 0);
  const Tensor best = gather(g.y(), math::maximum(ids, zero, {}), 0, {});
  const Tensor hit = math::cast(math::equal(data, best, {}), data.dtype(), {});
  const Tensor reached = unsorted_segment_sum(hit, ids, num, {});
  const Tensor one = scalar_like(reached, 1);
  return {hit * rows_at(g.dy() / math::maximum(reached, one, {}), ids, data),
          {}};
}

// The product of the rows before each in its run of equal ids; after it when
// `reverse`.
Tensor product_before(const Tensor& rows, const Tensor& ids, bool reverse) {
  static const OpDef& op = op_named("SegmentRecurrence");
  const Tensor zero = zeros_like(rows, {}), one = ones_like(rows, {});
  const AttrsRef before({{"reverse", reverse}, {"exclusive", true}});
  const Tensor inside = call1(op, {&zero, &one, &ids}, before.get());
  const Tensor begins = one - inside;  // 1 where a run begins, else 0
  const AttrsRef product({{"reverse", reverse}, {"previous", true}});
  return call1(op, {&rows, &begins, &ids}, product.get());
}

// The product of the others of the segment: of those before times those after
// in the order of the ids. A quotient would lose zeros.
Tensors grad_segment_prod(const GradCall& g) {
  const Tensor &data = g.x(0), &ids = g.x(1);
  if (g.attr<int64_t>("num_segments") == 0) return {zeros_like(data, {}), {}};
  const Tensor rows = merge_axes(data, ids.rank(), {});
  const Tensor flat = merge_axes(ids, ids.rank(), {});
  const Tensor order = argsort(flat, {}, {});
  const Tensor sorted = gather(rows, order, 0, {});
  const Tensor runs = gather(flat, order, 0, {});
  const Tensor others =
      product_before(sorted, runs, false) * product_before(sorted, runs, true);
  const Tensor share = gather(others, invert_permutation(order, {}), 0, {});
  return {reshape_like(share, data) * rows_at(g.dy(), ids, data), {}};
}

}  // namespace

void register_segment_ops(OpRegistry& r) {
  const std::pair<const char*, GradientFn> kinds[] = {
      {"UnsortedSegmentSum", &grad_segment_sum},
      {"UnsortedSegmentProd", &grad_segment_prod},
      {"UnsortedSegmentMin", &grad_segment_extreme},
      {"UnsortedSegmentMax", &grad_segment_extreme}};
  for (const auto& [name, gradient] : kinds) {
    r.op(name)
        .input("data", gradient == &grad_segment_extreme
                           ? kNumberTypes | kMoreIntegers
                           : kRealNumbers)
        .free_input("segment_ids", kIndexTypes)
        .output("output")
        .required_attr("num_segments", int64_t{0})
        .infer(&infer_segment)
        .cost(&cost_move)
        .split(&split_segment)
        .gradient(gradient);
  }
}

}  // namespace berth
