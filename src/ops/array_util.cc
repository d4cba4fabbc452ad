#include "ops/array_util.h"

#include <fmt/format.h>

#include <cmath>

#include "berth/ops/array.h"

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
    static const OpDef& op = op_named("Reshape");
    return call1(op, t, AttrsRef({{"shape", like.shape()}}).get());
  }
  static const OpDef& op = op_named("ReshapeLike");
  return call1(op, t, like);
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
  double low = 0, high = 0;
  switch (dtype) {
    case DType::kInt32:
      low = -0x1p31, high = 0x1p31 - 1;
      break;
    case DType::kInt64:
      low = -0x1p63, high = 0x1p63 - 1024;  // the last double below 2^63
      break;
    case DType::kUint8:
      high = 255;
      break;
    case DType::kInt8:
      low = -128, high = 127;
      break;
    default:
      return;
  }
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
