// Tensors from nothing: fill, range; and the ops that read only the shape of
// an input.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

Tensor fill(const Shape& shape, double value, DType dtype, Site site) {
  return call_checked(
      op_of<"Fill">(), site, {},
      AttrsRef({{"shape", shape}, {"value", value}, {"dtype", dtype}}).get());
}
Tensor zeros(const Shape& shape, DType dtype, Site site) {
  return fill(shape, 0, dtype, site);
}
Tensor ones(const Shape& shape, DType dtype, Site site) {
  return fill(shape, 1, dtype, site);
}
Tensor ones_like(const Tensor& x, Site site) {
  return call_checked(op_of<"OnesLike">(), site, {&x});
}
Tensor range(int64_t start, int64_t limit, int64_t delta, DType dtype,
             Site site) {
  return call_checked(op_of<"Range">(), site, {},
                      AttrsRef({{"start", start},
                                {"limit", limit},
                                {"delta", delta},
                                {"dtype", dtype}})
                          .get());
}

namespace {

DType real_dtype(const InferContext& c) {
  const DType dtype = c.attr<DType>("dtype");
  if (!(kEveryType & dtype_bit(dtype))) {
    c.fail(fmt::format("dtype is {}; expected one that holds numbers",
                       name_of(dtype)));
  }
  return dtype;
}

void infer_fill(InferContext& c) {
  const DType dtype = real_dtype(c);
  const Shape& shape = c.attr<Shape>("shape");
  check_elements(c, shape);
  check_value(c, "the value", c.attr<double>("value"), dtype);
  c.set_output(0, dtype, shape);
}

void infer_range(InferContext& c) {
  const DType dtype = real_dtype(c);
  const int64_t start = c.attr<int64_t>("start");
  const int64_t limit = c.attr<int64_t>("limit");
  const int64_t delta = c.attr<int64_t>("delta");
  if (delta == 0) c.fail("delta is 0; expected a step");
  if (!(kRealNumbers & dtype_bit(dtype))) {
    c.fail(fmt::format("dtype is {}; expected numbers with an order",
                       name_of(dtype)));
  }
  const __int128 span = delta > 0 ? static_cast<__int128>(limit) - start
                                  : static_cast<__int128>(start) - limit;
  const __int128 step =
      delta > 0 ? static_cast<__int128>(delta) : -static_cast<__int128>(delta);
  const __int128 n = span <= 0 ? 0 : (span + step - 1) / step;
  if (n > (__int128{1} << 48)) {
    c.fail(fmt::format("from {} to {} by {} has too many elements", start,
                       limit, delta));
  }
  const auto count = static_cast<int64_t>(n);
  if (count > 0) {
    if (dtype != int64) {
      check_value(c, "start", static_cast<double>(start), dtype);
      const auto last = static_cast<int64_t>(start + (n - 1) * delta);
      check_value(c, "the last value", static_cast<double>(last), dtype);
    }
  }
  c.set_output(0, dtype, Shape{count});
}

void infer_like_1(InferContext& c) { c.set_output(0, c.dtype(0), c.shape(1)); }

void infer_sum_like(InferContext& c) {
  const Shape &value = c.shape(0), &like = c.shape(1);
  if (!broadcast_shapes(c, value, like).compatible_with(value)) {
    c.fail(
        fmt::format("{} is not a broadcast of {}; expected a shape that "
                    "sums to it",
                    value.str(), like.str()));
  }
  infer_like_1(c);
}

void infer_broadcast_like(InferContext& c) {
  const Shape &value = c.shape(0), &like = c.shape(1);
  if (!broadcast_shapes(c, value, like).compatible_with(like)) {
    c.fail(fmt::format("{} does not broadcast to {}", value.str(), like.str()));
  }
  infer_like_1(c);
}

void infer_reshape_like(InferContext& c) {
  const int64_t n = c.shape(0).num_elements(), m = c.shape(1).num_elements();
  if (n >= 0 && m >= 0 && n != m) {
    c.fail(fmt::format("{} has {} elements, {} has {}; expected as many",
                       c.shape(0).str(), n, c.shape(1).str(), m));
  }
  infer_like_1(c);
}

// An axis that stays is split on both sides; one that is summed over gives
// partial sums.
std::vector<SplitSignature> split_sum_like(const InferContext& c) {
  const Shape &value = c.shape(0), &like = c.shape(1);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < value.rank(); ++i) {
    const int own = i - (value.rank() - like.rank());
    if (value[i] == 1) continue;
    if (own >= 0 && like[own] == value[i]) {
      rules.push_back({{cut(i), cut(own)}, {cut(own)}});
    } else if (own < 0 || like[own] == 1) {
      rules.push_back({{cut(i), kWhole}, {kPartialSum}});
    }
  }
  return rules;
}

std::vector<SplitSignature> split_reshape_like(const InferContext& c) {
  const Shape &in = c.shape(0), &like = c.shape(1);
  if (in.rank() == 0 || like.rank() == 0 || in[0] != like[0]) return {};
  return {{{cut(0), cut(0)}, {cut(0)}}};
}

std::vector<SplitSignature> split_behind(const InferContext& c) {
  std::vector<SplitSignature> all;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    for (int k = 0; k < c.shape(1).rank(); ++k) {
      all.push_back({{cut(i), cut(k)}, {cut(i)}});
    }
  }
  return all;
}

void register_like_ops(OpRegistry& r) {
  r.op("SumLike")
      .input("value", kEveryNumber)
      .free_input("like")
      .output("output")
      .infer(&infer_sum_like)
      .split(&split_sum_like)
      .gradient([](const GradCall& g) {
        return Tensors{broadcast_like(g.dy(), g.x(0)), {}};
      })
      .doc("Sums over the axes along which `like` was broadcast.");
  r.op("BroadcastLike")
      .input("value")
      .free_input("like")
      .output("output")
      .infer(&infer_broadcast_like)
      .cost(&cost_move)
      .split(&split_elementwise)
      .gradient([](const GradCall& g) {
        return Tensors{sum_to(g.dy(), g.x(0)), {}};
      });
  r.op("ReshapeLike")
      .input("tensor", kEveryType | kStringType)
      .free_input("like")
      .output("output")
      .kind(OpKind::kAlias)
      .infer(&infer_reshape_like)
      .cost(&cost_nothing)
      .split(&split_reshape_like)
      .gradient([](const GradCall& g) {
        return Tensors{reshape_like(g.dy(), g.x(0)), {}};
      });
  // The value of `input` once `after` is known: a point that no common
  // subexpression and no reordering crosses.
  r.op("_Behind")
      .input("input", kAnyType)
      .free_input("after")
      .output("output")
      .kind(OpKind::kAlias)
      .infer(&infer_same_as_0)
      .cost(&cost_nothing)
      .split(&split_behind)
      .gradient([](const GradCall& g) {
        return Tensors{g.dy(), {}};
      });
  r.op("SizeRatio")
      .input("a", kInexactTypes)
      .free_input("b")
      .output("ratio")
      .metadata()
      .infer([](InferContext& c) { c.set_output(0, c.dtype(0), Shape{}); })
      .cost(&cost_nothing)
      .not_differentiable()
      .doc("Elements of a per element of b.");
}

}  // namespace

void register_generate_ops(OpRegistry& r) {
  r.op("Fill")
      .output("output")
      .required_attr("shape", Shape{})
      .attr("value", 0.0)
      .attr("dtype", float32)
      .infer(&infer_fill)
      .cost(&cost_move)
      .split([](const InferContext& c) {
        std::vector<SplitSignature> rules;
        for (int i = 0; i < c.output(0).shape.rank(); ++i) {
          rules.push_back({{}, {cut(i)}});
        }
        return rules;
      })
      .not_differentiable();
  r.op("Range")
      .output("output")
      .attr("start", int64_t{0})
      .required_attr("limit", int64_t{0})
      .attr("delta", int64_t{1})
      .attr("dtype", int64)
      .infer(&infer_range)
      .cost(&cost_move)
      .split(&split_generator)
      .not_differentiable();
  register_like_ops(r);
}

}  // namespace berth
