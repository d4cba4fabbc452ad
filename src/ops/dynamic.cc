// Results whose length depends on values: where, boolean_mask, unique.
//
// The ops give results of `max_size` rows and how many of them count; the
// public functions cut off the others when they may read that number.

#include <fmt/format.h>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

// Fails in a trace: there are no values to count.
void expect_values(const char* what, const Tensor& x, Site site) {
  set_site(site);
  if (!x.is_symbolic() && !tracing()) return;
  throw Untraceable<errors::InvalidArgument>(fmt::format(
      "{}: the shape of the result depends on values, which a traced function "
      "does not have{}; expected max_size, the most rows there may be",
      what, where_text()));
}

// The first `count` rows.
Tensor first_rows(const Tensor& t, int64_t count) {
  std::vector<int64_t> begin(static_cast<size_t>(t.rank()), 0);
  std::vector<int64_t> size(begin.size(), -1);
  size[0] = count;
  return slice(t, begin, size, {});
}

Padded padded_where(const Tensor& condition, int64_t max_size, Site site) {
  set_site(site);
  (void)condition.dtype();  // throws on an empty handle
  Tensors r = call_many(op_of<"Where">(), {&condition},
                        AttrsRef({{"max_size", max_size}}).get());
  return {r[0], r[1]};
}

Unique padded_unique(const char* name, const Tensor& x, const UniqueOptions& o,
                     Site site) {
  set_site(site);
  (void)x.dtype();
  if (!o.max_size) expect_values(name, x, site);
  Tensors r = call_many(
      op_named(name), {&x},
      AttrsRef({{"out_idx", o.out_idx}, {"max_size", o.max_size.value_or(-1)}})
          .get());
  Unique u;
  u.y = r[0];
  u.idx = r[1];
  u.size = r.back();
  if (r.size() == 4) u.count = r[2];
  if (o.max_size) return u;
  const int64_t n = u.size.item<int64_t>();
  u.y = first_rows(u.y, n);
  if (u.count.defined()) u.count = first_rows(u.count, n);
  return u;
}

// x and mask with the mask's axes made one.
std::pair<Tensor, Tensor> flat_mask(const Tensor& x, const Tensor& mask,
                                    Site site) {
  set_site(site);
  bool fits = mask.rank() > 0 && mask.rank() <= x.rank();
  for (int i = 0; fits && i < mask.rank(); ++i) {
    fits = x.shape()[i] < 0 || mask.shape()[i] < 0 ||
           x.shape()[i] == mask.shape()[i];
  }
  if (!fits) {
    throw errors::InvalidArgument(fmt::format(
        "boolean_mask: the mask is {}, x is {}{}; expected a shape that x's "
        "begins with",
        mask.shape().str(), x.shape().str(), where_text()));
  }
  return {merge_axes(x, mask.rank(), site),
          merge_axes(mask, mask.rank(), site)};
}

}  // namespace

Padded where(const Tensor& condition, MaxSize max_size, Site site) {
  return padded_where(condition, max_size.max_size, site);
}
Tensor where(const Tensor& condition, Site site) {
  expect_values("Where", condition, site);
  const Padded all = padded_where(condition, -1, site);
  return first_rows(all.values, all.count.item<int64_t>());
}

Tensor boolean_mask(const Tensor& x, const Tensor& mask, Site site) {
  expect_values("boolean_mask", mask, site);
  const auto [rows, flat] = flat_mask(x, mask, site);
  return gather(rows, squeeze(where(flat, site), {1}, site), 0, site);
}
Padded boolean_mask(const Tensor& x, const Tensor& mask, MaxSize max_size,
                    Site site) {
  const auto [rows, flat] = flat_mask(x, mask, site);
  const Padded at = where(flat, max_size, site);
  const Tensor taken = gather(rows, squeeze(at.values, {1}, site), 0, site);
  Tensor counts = sequence_mask(at.count, max_size.max_size, site);
  while (counts.rank() < taken.rank()) counts = expand_dims(counts, -1, site);
  return {where(counts, taken, scalar_like(taken, 0), site), at.count};
}

Unique unique(const Tensor& x, const UniqueOptions& o, Site site) {
  return padded_unique("Unique", x, o, site);
}
Unique unique_with_counts(const Tensor& x, const UniqueOptions& o, Site site) {
  return padded_unique("UniqueWithCounts", x, o, site);
}

namespace {

// The rows of a result: max_size, or as many as there are elements when it is
// -1.
int64_t most_rows(const InferContext& c) {
  const int64_t n = c.attr<int64_t>("max_size");
  if (n < -1) {
    c.fail(fmt::format("max_size is {}; expected 0 or more, or -1", n));
  }
  return n >= 0 ? n : c.shape(0).num_elements();
}

void infer_where(InferContext& c) {
  const Shape out{most_rows(c), c.shape(0).rank()};
  check_elements(c, out);
  c.set_output(0, int64, out);
  c.set_output(1, int64, {});
}

void infer_unique(InferContext& c) {
  c.expect_rank(0, 1, "[n]");
  const DType type = c.attr<DType>("out_idx");
  if (!(kIndexTypes & dtype_bit(type))) {
    c.fail(
        fmt::format("out_idx is {}; expected int32 or int64", name_of(type)));
  }
  const Shape rows{most_rows(c)};
  c.set_output(0, c.dtype(0), rows);
  c.set_output(1, type, c.shape(0));
  if (c.num_outputs() == 4) c.set_output(2, type, rows);
  c.set_output(c.num_outputs() - 1, int64, {});
}

}  // namespace

void register_dynamic_ops(OpRegistry& r) {
  r.op("Where")
      .input("condition", kRealNumbers | kBoolType)
      .output("index")
      .output("count")
      .attr("max_size", int64_t{-1})
      .infer(&infer_where)
      .cost(&cost_move)
      .not_differentiable()
      .doc("Indices of what is not zero; rows after `count` are zero.");
  for (const bool counts : {false, true}) {
    OpBuilder op = r.op(counts ? "UniqueWithCounts" : "Unique");
    op.input("x", kNumberTypes | kMoreIntegers).output("y").output("idx");
    if (counts) op.output("count");
    op.output("size")
        .attr("out_idx", int32)
        .attr("max_size", int64_t{-1})
        .infer(&infer_unique)
        .cost(&cost_move)
        .not_differentiable()
        .doc("Different elements; those of y after `size` are zero.");
  }
}

}  // namespace berth
