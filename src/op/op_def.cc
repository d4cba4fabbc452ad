#include "op/op_def.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/op_registry.h"

namespace berth {

const AttrValue& OpDef::attr_value(const Attrs* attrs,
                                   std::string_view name) const {
  if (attrs) {
    if (const AttrValue* v = attrs->find(name)) return *v;
  }
  for (const AttrDef& a : attrs_) {
    if (a.name != name) continue;
    if (!a.required) return a.default_value;
    throw errors::InvalidArgument(fmt::format("{}: attribute '{}' is missing{}",
                                              name_, name, where_text()));
  }
  throw errors::InvalidArgument(
      fmt::format("{} has no attribute '{}'", name_, name));
}

void OpDef::bad_attr_type(std::string_view name) const {
  throw errors::InvalidArgument(fmt::format(
      "{}: attribute '{}' has another type than declared", name_, name));
}

Cost OpDef::cost(const InferContext& c) const {
  if (cost_) return cost_(c);
  Cost cost;
  for (int i = 0; i < c.num_outputs(); ++i) {
    const OutSpec& o = c.output(i);
    const double n = static_cast<double>(o.shape.num_elements());
    cost.flops += n;
    cost.bytes += n * static_cast<double>(size_of(o.dtype));
  }
  for (int i = 0; i < c.num_inputs(); ++i) {
    cost.bytes += static_cast<double>(c.shape(i).num_elements()) *
                  static_cast<double>(size_of(c.dtype(i)));
  }
  return cost;
}

Tensor GradCall::dy(int i) const {
  if (grads_[i].defined()) return grads_[i];
  const OpDef& zeros = op_named("ZerosLike");
  Tensor result;
  const Tensor* in[] = {&out_[i]};
  apply(zeros, in, nullptr, {&result, 1});
  return result;
}

}  // namespace berth
