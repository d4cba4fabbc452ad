#include "ops/array_util.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/named_call.h"
#include "tensor/visit_dtype.h"

namespace berth {

Tensor call_checked(const OpDef& op, Site site,
                    std::initializer_list<const Tensor*> in,
                    const Attrs* attrs) {
  set_site(site);
  for (const Tensor* t : in) (void)t->dtype();  // throws on an empty handle
  return call1(op, in, attrs);
}

Tensor reshape_like(const Tensor& t, const Tensor& like) {
  if (t.shape() == like.shape()) return t;
  if (like.shape().is_fully_defined()) {
    return call1(op_of<"Reshape">(), t,
                 AttrsRef({{"shape", like.shape()}}).get());
  }
  return call1(op_of<"ReshapeLike">(), t, like);
}

Tensor merge_axes(const Tensor& t, int axes, Site site) {
  if (axes == 1) return t;
  if (axes == 0) return expand_dims(t, 0, site);
  const auto dims = t.shape().dims();
  const auto begin = static_cast<size_t>(axes);
  Shape shape{Shape(dims.first(begin)).num_elements()};
  for (const int64_t d : dims.subspan(begin)) shape.push_back(d);
  const auto unknown = std::count_if(shape.begin(), shape.end(),
                                     [](int64_t d) { return d < 0; });
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (unknown == 0 || (unknown == 1 && !empty)) return reshape(t, shape, site);
  // More than one length for Reshape to find: sums of zeros have them.
  std::vector<int64_t> front, back;
  for (int i = 0; i < t.rank(); ++i) (i < axes ? front : back).push_back(i);
  const Tensor zeros = zeros_like(math::cast(t, float32, site), site);
  Tensor like = reshape(math::reduce_sum(zeros, {.axis = back}, site),
                        {kUnknownDim}, site);
  for (size_t i = 0; i < back.size(); ++i) like = expand_dims(like, -1, site);
  return reshape_like(t, like + math::reduce_sum(zeros, {.axis = front}, site));
}

Tensor call_with_shape_of(const char* name, std::vector<const Tensor*> in,
                          const Tensor& like, std::vector<Attrs::Pair> attrs) {
  std::string op_name = name;
  if (like.shape().is_fully_defined()) {
    attrs.emplace_back("shape", like.shape());
  } else {
    op_name += "Like";
    in.push_back(&like);
  }
  Tensor out;
  apply(op_named(op_name), in, AttrsRef(std::move(attrs)).get(), {&out, 1});
  return out;
}

int64_t add_dims(const InferContext& c, int64_t a, int64_t b) {
  int64_t sum = 0;
  if (a < 0 || b < 0) return kUnknownDim;
  if (__builtin_add_overflow(a, b, &sum)) {
    c.fail(fmt::format("the dimension {} + {} overflows", a, b));
  }
  return sum;
}

int64_t multiply_dims(const InferContext& c, int64_t a, int64_t b) {
  int64_t product = 0;
  if (a < 0 || b < 0) return kUnknownDim;
  if (__builtin_mul_overflow(a, b, &product)) {
    c.fail(fmt::format("the dimension {} * {} overflows", a, b));
  }
  return product;
}

void check_elements(const InferContext& c, const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d < 0) continue;
    if (__builtin_mul_overflow(n, d, &n)) {
      c.fail(fmt::format("shape {} has too many elements", shape.str()));
    }
  }
}

void check_value(const InferContext& c, const char* what, double value,
                 DType dtype) {
  if (!is_integer(dtype)) return;
  double low = 0, high = 0;
  visit_dtype(dtype, what, [&]<class T>(T) {
    using Limits = std::numeric_limits<T>;
    low = convert_element<double>(Limits::lowest());
    // The last double below 2^63 or 2^64.
    high = sizeof(T) == 8 ? std::nextafter(std::ldexp(1, Limits::digits), 0)
                          : convert_element<double>(Limits::max());
  });
  if (value == std::floor(value) && value >= low && value <= high) return;
  c.fail(
      fmt::format("{} {} does not fit {}; expected a whole number in "
                  "[{:.0f}, {:.0f}]",
                  what, value, name_of(dtype), low, high));
}

Cost cost_move(const InferContext& c) {
  Cost cost;
  for (int i = 0; i < c.num_inputs(); ++i) {
    cost.bytes += static_cast<double>(c.shape(i).num_elements()) *
                  static_cast<double>(size_of(c.dtype(i)));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    cost.bytes += static_cast<double>(c.output(i).shape.num_elements()) *
                  static_cast<double>(size_of(c.output(i).dtype));
  }
  return cost;
}

Cost cost_pick(const InferContext& c) {
  return {0, 2.0 * static_cast<double>(c.output(0).shape.num_elements()) *
                 static_cast<double>(size_of(c.output(0).dtype))};
}

Cost cost_nothing(const InferContext&) { return {}; }

std::vector<SplitSignature> split_generator(const InferContext& c) {
  if (c.output(0).shape.rank() == 0) return {};
  return {{{}, {cut(0)}}};
}

}  // namespace berth
