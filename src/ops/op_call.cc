#include "ops/op_call.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "berth/config.h"
#include "berth/errors.h"
#include "berth/ops/numbers.h"
#include "device/device_manager.h"
#include "op/device_scope.h"
#include "ops/named_call.h"
#include "tensor/tensor_impl.h"
#include "tensor/visit_dtype.h"

namespace berth {

namespace {

Tensors call_pointers(const OpDef& op, std::span<const Tensor* const> in,
                      const Attrs* attrs) {
  Tensors out(static_cast<size_t>(op.num_outputs(attrs)));
  apply(op, in, attrs, out);
  return out;
}

template <class T>
void store(const Tensor& t, double value) {
  if constexpr (std::is_integral_v<T>) {
    const bool fits =
        std::is_same_v<T, bool> ||
        (value == std::floor(value) &&
         value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
         value <= static_cast<double>(std::numeric_limits<T>::max()));
    if (!fits) {
      throw errors::InvalidArgument(fmt::format(
          "the number {} does not fit a tensor of {}{}; expected a whole "
          "number in its range, or a tensor of another dtype: write "
          "math::cast(x, float32)",
          value, name_of(t.dtype()), where_text()));
    }
  }
  *reinterpret_cast<T*>(t.impl()->data()) = convert_element<T>(value);
}

}  // namespace

Tensors call_many(const OpDef& op, std::initializer_list<const Tensor*> in,
                  const Attrs* attrs) {
  return call_pointers(op, {in.begin(), in.size()}, attrs);
}

Tensors call_list(const OpDef& op, const Tensors& in, const Attrs* attrs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : in) pointers.push_back(&t);
  return call_pointers(op, pointers, attrs);
}

namespace {

// A number is not a tensor that the user put on the host: where copies are
// errors or warnings it is made where the other operand is.
Tensor beside(const Tensor& like, const Tensor& number) {
  if (config::device_policy() == config::DevicePolicy::kSilent) return number;
  const TensorImpl& t = *like.impl();
  if (t.kind != TensorKind::kConcrete) return number;
  Device& there = *t.block->device;
  if (&there == number.impl()->block->device) return number;
  return copy_to_device(number, there);
}

}  // namespace

Tensor scalar_like(const Tensor& like, double value) {
  Tensor t = make_tensor(DeviceManager::get().host(), like.dtype(), Shape{});
  visit_dtype(like.dtype(), "a number as operand",
              [&](auto type) { store<decltype(type)>(t, value); });
  return beside(like, t);
}

Tensor detail::number_like(const Tensor& like, double value, Site site) {
  set_site(site);
  return scalar_like(like, value);
}

Tensor sum_to(const Tensor& dy, const Tensor& x) {
  const Shape& from = dy.shape();
  const Shape& to = x.shape();
  if (from == to) return dy;
  if (!from.is_fully_defined() || !to.is_fully_defined()) {
    return call1(op_of<"SumLike">(), dy, x);
  }
  const int shift = from.rank() - to.rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < from.rank(); ++i) {
    if (i < shift || to[i - shift] != from[i]) axes.push_back(i);
  }
  Tensor r = call1(op_of<"Sum">(), dy, AttrsRef({{"axis", axes}}).get());
  if (r.shape() == to) return r;
  return call1(op_of<"Reshape">(), r, AttrsRef({{"shape", to}}).get());
}

Tensor broadcast_like(const Tensor& v, const Tensor& like) {
  if (v.shape() == like.shape()) return v;
  if (like.shape().is_fully_defined()) {
    return call1(op_of<"BroadcastTo">(), v,
                 AttrsRef({{"shape", like.shape()}}).get());
  }
  return call1(op_of<"BroadcastLike">(), v, like);
}

Tensor size_ratio(const Tensor& a, const Tensor& b) {
  if (a.shape().is_fully_defined() && b.shape().is_fully_defined()) {
    return scalar_like(a, static_cast<double>(a.num_elements()) /
                              static_cast<double>(b.num_elements()));
  }
  return call1(op_of<"SizeRatio">(), a, b);
}

}  // namespace berth
