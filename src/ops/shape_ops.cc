// Shapes as tensors, evenly spaced numbers.

#include <fmt/format.h>

#include <cmath>

#include "berth/ops/array.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

Tensor shape(const Tensor& x, DType out_type, Site site) {
  return call_checked(op_of<"Shape">(), site, {&x},
                      AttrsRef({{"out_type", out_type}}).get());
}
Tensor size(const Tensor& x, DType out_type, Site site) {
  return call_checked(op_of<"Size">(), site, {&x},
                      AttrsRef({{"out_type", out_type}}).get());
}
Tensor rank(const Tensor& x, Site site) {
  return call_checked(op_of<"Rank">(), site, {&x});
}
Tensor ensure_shape(const Tensor& x, const Shape& shape, Site site) {
  return call_checked(op_of<"EnsureShape">(), site, {&x},
                      AttrsRef({{"shape", shape}}).get());
}
Tensor linspace(double start, double stop, int64_t num, DType dtype,
                Site site) {
  return call_checked(
      op_of<"LinSpace">(), site, {},
      AttrsRef(
          {{"start", start}, {"stop", stop}, {"num", num}, {"dtype", dtype}})
          .get());
}
Tensor float_range(double start, double limit, double delta, DType dtype,
                   Site site) {
  return call_checked(op_of<"FloatRange">(), site, {},
                      AttrsRef({{"start", start},
                                {"limit", limit},
                                {"delta", delta},
                                {"dtype", dtype}})
                          .get());
}

namespace {

template <int kRank>  // of the result
void infer_shape_of(InferContext& c) {
  const DType type = c.attr<DType>("out_type");
  if (!(kIndexTypes & dtype_bit(type))) {
    c.fail(
        fmt::format("out_type is {}; expected int32 or int64", name_of(type)));
  }
  c.set_output(0, type, kRank == 0 ? Shape{} : Shape{c.shape(0).rank()});
}

void infer_ensure_shape(InferContext& c) {
  const Shape& want = c.attr<Shape>("shape");
  if (!c.shape(0).compatible_with(want)) {
    c.fail(fmt::format("the tensor is {}; expected {}", c.shape(0).str(),
                       want.str()));
  }
  Shape out = c.shape(0);
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] < 0 && want[i] >= 0) out[i] = want[i];
  }
  c.set_output(0, c.dtype(0), out);
}

void set_numbers(InferContext& c, double first, double last, double count) {
  const DType dtype = c.attr<DType>("dtype");
  if (!((kNumberTypes | kMoreIntegers) & dtype_bit(dtype))) {
    c.fail(fmt::format("dtype is {}; expected numbers", name_of(dtype)));
  }
  if (!std::isfinite(first) || !std::isfinite(last)) {
    c.fail(fmt::format("from {} to {}; expected finite numbers", first, last));
  }
  if (count > 0x1p48) {
    c.fail(fmt::format("from {} to {} has too many elements", first, last));
  }
  if (count > 0) {
    check_value(c, "the first value", is_integer(dtype) ? std::floor(first) : 0,
                dtype);
    check_value(c, "the last value", is_integer(dtype) ? std::floor(last) : 0,
                dtype);
  }
  c.set_output(0, dtype, Shape{static_cast<int64_t>(count)});
}

void infer_linspace(InferContext& c) {
  const int64_t num = c.attr<int64_t>("num");
  if (num < 1) c.fail(fmt::format("num is {}; expected 1 or more", num));
  set_numbers(c, c.attr<double>("start"), c.attr<double>("stop"),
              static_cast<double>(num));
}

void infer_float_range(InferContext& c) {
  const double start = c.attr<double>("start"), limit = c.attr<double>("limit");
  const double delta = c.attr<double>("delta");
  if (delta == 0 || !std::isfinite(delta)) {
    c.fail(fmt::format("delta is {}; expected a step", delta));
  }
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  set_numbers(c, start,
              std::isfinite(limit) ? start + (count - 1) * delta : limit,
              count);
}

}  // namespace

void register_shape_ops(OpRegistry& r) {
  r.op("Shape")
      .input("input")
      .output("output")
      .attr("out_type", int32)
      .metadata()
      .infer(&infer_shape_of<1>)
      .cost(&cost_nothing)
      .not_differentiable();
  for (const char* name : {"Size", "Rank"}) {
    r.op(name)
        .input("input")
        .output("output")
        .attr("out_type", int32)
        .metadata()
        .infer(&infer_shape_of<0>)
        .cost(&cost_nothing)
        .not_differentiable();
  }
  r.op("EnsureShape")
      .input("input")
      .output("output")
      .required_attr("shape", Shape{})
      .kind(OpKind::kAlias)
      .infer(&infer_ensure_shape)
      .cost(&cost_nothing)
      .split(&split_elementwise)
      .gradient([](const GradCall& g) { return Tensors{g.dy()}; });
  r.op("LinSpace")
      .output("output")
      .required_attr("start", 0.0)
      .required_attr("stop", 0.0)
      .required_attr("num", int64_t{1})
      .attr("dtype", float32)
      .infer(&infer_linspace)
      .cost(&cost_move)
      .split(&split_generator)
      .not_differentiable();
  r.op("FloatRange")
      .output("output")
      .attr("start", 0.0)
      .required_attr("limit", 0.0)
      .attr("delta", 1.0)
      .attr("dtype", float32)
      .infer(&infer_float_range)
      .cost(&cost_move)
      .split(&split_generator)
      .not_differentiable()
      .doc("start, start + delta, ... before limit: Range of floats.");
}

}  // namespace berth
