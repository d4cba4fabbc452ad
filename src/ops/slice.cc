// Parts of a tensor: slice, strided slice, subscripts.

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "op/slice_spec.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

using Ints = std::vector<int64_t>;

Tensor slice(const Tensor& x, const Ints& begin, const Ints& size, Site site) {
  return call_checked(op_of<"Slice">(), site, {&x},
                      AttrsRef({{"begin", begin}, {"size", size}}).get());
}

namespace {

std::vector<Attrs::Pair> slice_pairs(const Ints& begin, const Ints& end,
                                     const StridedSliceOptions& o) {
  const Ints strides = o.strides.empty() ? Ints(begin.size(), 1) : o.strides;
  return {{"begin", begin},         {"end", end},
          {"strides", strides},     {"begin_mask", o.begin_mask},
          {"end_mask", o.end_mask}, {"shrink_axis_mask", o.shrink_axis_mask}};
}

}  // namespace

Tensor strided_slice(const Tensor& x, const Ints& begin, const Ints& end,
                     const StridedSliceOptions& o, Site site) {
  return call_checked(op_of<"StridedSlice">(), site, {&x},
                      AttrsRef(slice_pairs(begin, end, o)).get());
}
Tensor tensor_strided_slice_update(const Tensor& x, const Ints& begin,
                                   const Ints& end, const Tensor& value,
                                   const StridedSliceOptions& o, Site site) {
  return call_checked(op_of<"TensorStridedSliceUpdate">(), site, {&x, &value},
                      AttrsRef(slice_pairs(begin, end, o)).get());
}

Tensor Tensor::operator[](std::initializer_list<Index> subscripts) const {
  Ints begin, end, strides;
  int64_t begin_mask = 0, end_mask = 0, shrink = 0, bit = 1;
  for (const Index& s : subscripts) {
    begin.push_back(s.begin.value_or(0));
    end.push_back(s.end.value_or(0));
    strides.push_back(s.is_index ? 1 : s.stride);
    if (s.is_index) {
      shrink |= bit;
    } else {
      if (!s.begin) begin_mask |= bit;
      if (!s.end) end_mask |= bit;
    }
    bit = static_cast<int64_t>(static_cast<uint64_t>(bit) << 1);
  }
  (void)dtype();  // throws on an empty handle
  set_site({});   // an operator does not know its line
  return call1(op_of<"StridedSlice">(), *this,
               AttrsRef({{"begin", begin},
                         {"end", end},
                         {"strides", strides},
                         {"begin_mask", begin_mask},
                         {"end_mask", end_mask},
                         {"shrink_axis_mask", shrink}})
                   .get());
}

namespace {

Shape sliced_shape(const std::array<SliceAxis, kMaxRank>& axes, int rank) {
  Shape out;
  for (int i = 0; i < rank; ++i) {
    if (!axes[i].shrink) out.push_back(axes[i].size);
  }
  return out;
}

void infer_strided_slice(InferContext& c) {
  const auto axes = slice_axes(c.op(), c.attrs(), c.shape(0));
  c.set_output(0, c.dtype(0), sliced_shape(axes, c.shape(0).rank()));
}

void infer_strided_slice_grad(InferContext& c) {
  const Shape shape = c.num_inputs() == 2 ? c.shape(1) : c.attr<Shape>("shape");
  const auto axes = slice_axes(c.op(), c.attrs(), shape);
  const Shape want = sliced_shape(axes, shape.rank());
  if (!want.compatible_with(c.shape(0))) {
    c.fail(fmt::format("dy is {}; expected {}, the slice of {}",
                       c.shape(0).str(), want.str(), shape.str()));
  }
  check_elements(c, shape);
  c.set_output(0, c.dtype(0), shape);
}

void infer_slice_update(InferContext& c) {
  const auto axes = slice_axes(c.op(), c.attrs(), c.shape(0));
  const Shape want = sliced_shape(axes, c.shape(0).rank());
  if (!want.compatible_with(c.shape(1))) {
    c.fail(fmt::format("value is {}; expected {}, the slice of {}",
                       c.shape(1).str(), want.str(), c.shape(0).str()));
  }
  infer_same_as_0(c);
}

std::vector<SplitSignature> split_slice_update(const InferContext& c) {
  const auto axes = slice_axes(c.op(), c.attrs(), c.shape(0));
  std::vector<SplitSignature> rules;
  int own = 0;
  for (int i = 0; i < c.shape(0).rank(); ++i) {
    if (axes[i].shrink) continue;
    if (axes[i].whole) rules.push_back({{cut(i), cut(own)}, {cut(i)}});
    ++own;
  }
  return rules;
}

// Axes that the slice takes whole; `kGrad`: from the slice to the full shape.
template <bool kGrad>
std::vector<SplitSignature> split_strided_slice(const InferContext& c) {
  const Shape& full = kGrad ? c.output(0).shape : c.shape(0);
  const auto axes = slice_axes(c.op(), c.attrs(), full);
  std::vector<SplitSignature> rules;
  int own = 0;
  for (int i = 0; i < full.rank(); ++i) {
    if (axes[i].shrink) continue;
    if (axes[i].whole) {
      SplitSignature rule{{cut(kGrad ? own : i)}, {cut(kGrad ? i : own)}};
      if (c.num_inputs() == 2) rule.inputs.push_back(cut(i));
      rules.push_back(std::move(rule));
    }
    ++own;
  }
  return rules;
}

std::vector<Attrs::Pair> pairs_of(const GradCall& g) {
  std::vector<Attrs::Pair> pairs;
  for (const char* name : {"begin", "end", "strides"}) {
    pairs.emplace_back(name, g.attr<Ints>(name));
  }
  for (const char* name : {"begin_mask", "end_mask", "shrink_axis_mask"}) {
    pairs.emplace_back(name, g.attr<int64_t>(name));
  }
  return pairs;
}

Tensors grad_strided_slice(const GradCall& g) {
  const Tensor dy = g.dy();
  return {call_with_shape_of("StridedSliceGrad", {&dy}, g.x(0), pairs_of(g))};
}

Tensors grad_strided_slice_grad(const GradCall& g) {
  Tensors grads(static_cast<size_t>(g.num_inputs()));
  grads[0] =
      call1(op_of<"StridedSlice">(), g.dy(), AttrsRef(pairs_of(g)).get());
  return grads;
}

Tensors grad_slice_update(const GradCall& g) {
  const AttrsRef attrs(pairs_of(g));
  const Tensor dy = g.dy();
  Tensor dx, dvalue;
  if (g.needs(0)) {
    dx = call1(op_of<"TensorStridedSliceUpdate">(), dy, zeros_like(g.x(1), {}),
               attrs.get());
  }
  if (g.needs(1)) dvalue = call1(op_of<"StridedSlice">(), dy, attrs.get());
  return {dx, dvalue};
}

void infer_slice(InferContext& c) {
  const Shape& in = c.shape(0);
  const Ints &begin = c.attr<Ints>("begin"), &size = c.attr<Ints>("size");
  const size_t rank = static_cast<size_t>(in.rank());
  if (begin.size() != rank || size.size() != rank) {
    c.fail(
        fmt::format("begin and size have {} and {} numbers; expected {}, "
                    "one per axis of {}",
                    begin.size(), size.size(), rank, in.str()));
  }
  Shape out = in;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t b = begin[i], n = size[i], dim = in[i];
    const bool inside =
        b >= 0 && n >= -1 && (dim < 0 || (b <= dim && (n < 0 || n <= dim - b)));
    if (!inside) {
      c.fail(fmt::format(
          "begin {} and size {} of axis {} leave {}; expected "
          "0 <= begin, begin + size <= {}",
          b, n, i, in.str(),
          dim < 0 ? std::string("its length") : std::to_string(dim)));
    }
    if (n >= 0) {
      (void)add_dims(c, b, n);  // the gradient adds them
      out[i] = n;
    } else if (b != 0) {
      out[i] = dim < 0 ? kUnknownDim : dim - b;
    }
  }
  c.set_output(0, c.dtype(0), out);
}

std::vector<SplitSignature> split_slice(const InferContext& c) {
  const Shape& in = c.shape(0);
  std::vector<SplitSignature> rules;
  for (int i = 0; i < in.rank(); ++i) {
    if (c.output(0).shape[i] != in[i] || c.attr<Ints>("begin")[i] != 0)
      continue;
    rules.push_back({{cut(i)}, {cut(i)}});
  }
  return rules;
}

// Zeros around dy. The sizes after it need not be known: the slice is then
// written as a strided one.
Tensors grad_slice(const GradCall& g) {
  const Shape& in = g.x(0).shape();
  const Ints &begin = g.attr<Ints>("begin"), &size = g.attr<Ints>("size");
  const Tensor dy = g.dy();
  if (in.is_fully_defined()) {
    Ints paddings;
    for (int i = 0; i < in.rank(); ++i) {
      const int64_t n = size[i] < 0 ? in[i] - begin[i] : size[i];
      paddings.push_back(begin[i]);
      paddings.push_back(in[i] - begin[i] - n);
    }
    return {pad(dy, paddings, {})};
  }
  Ints end, strides(begin.size(), 1);
  int64_t end_mask = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    end.push_back(begin[i] + size[i]);
    if (size[i] < 0) end_mask |= int64_t{1} << i;
  }
  return {call_with_shape_of("StridedSliceGrad", {&dy}, g.x(0),
                             {{"begin", begin},
                              {"end", end},
                              {"strides", strides},
                              {"end_mask", end_mask}})};
}

OpBuilder& slice_attrs(OpBuilder& op) {
  return op.required_attr("begin", Ints{})
      .required_attr("end", Ints{})
      .required_attr("strides", Ints{})
      .attr("begin_mask", int64_t{0})
      .attr("end_mask", int64_t{0})
      .attr("shrink_axis_mask", int64_t{0});
}

}  // namespace

void register_slice_ops(OpRegistry& r) {
  r.op("Slice")
      .input("input")
      .output("output")
      .required_attr("begin", Ints{})
      .required_attr("size", Ints{})
      .infer(&infer_slice)
      .cost(&cost_pick)
      .split(&split_slice)
      .gradient(&grad_slice);
  {
    OpBuilder op = r.op("StridedSlice");
    slice_attrs(op.input("input").output("output"))
        .infer(&infer_strided_slice)
        .cost(&cost_pick)
        .split(&split_strided_slice<false>)
        .gradient(&grad_strided_slice);
  }
  {
    OpBuilder op = r.op("TensorStridedSliceUpdate");
    slice_attrs(op.input("input").input("value").output("output"))
        .infer(&infer_slice_update)
        .cost(&cost_move)
        .split(&split_slice_update)
        .gradient(&grad_slice_update)
        .doc("A copy of input in which the slice is value.");
  }
  for (const bool like : {false, true}) {
    OpBuilder op = r.op(like ? "StridedSliceGradLike" : "StridedSliceGrad");
    op.input("dy").output("dx");
    if (like) {
      op.free_input("like");
    } else {
      op.required_attr("shape", Shape{});
    }
    slice_attrs(op)
        .infer(&infer_strided_slice_grad)
        .cost(&cost_pick)
        .split(&split_strided_slice<true>)
        .gradient(&grad_strided_slice_grad);
  }
}

}  // namespace berth
