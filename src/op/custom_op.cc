// Custom ops: registration from outside of the library.

#include "berth/custom_op.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth {

OpBuilder register_op(std::string name) {
  return OpRegistry::get().op(std::move(name));
}

namespace {

// Kernels and rules only look for the attributes that they know.
void check_attrs(const OpDef& op, const std::vector<Attrs::Pair>& attrs) {
  for (const auto& [name, value] : attrs) {
    std::string known;
    bool fits = false;
    for (const AttrDef& a : op.attrs()) {
      fits =
          fits || (a.name == name && a.default_value.index() == value.index());
      known += " " + a.name;
    }
    if (fits) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: there is no attribute '{}' of this type{}; expected{}", op.name(),
        name, where_text(), known.empty() ? " none" : " one of" + known));
  }
}

}  // namespace

Tensors call_op(std::string_view name, const Tensors& inputs,
                std::vector<Attrs::Pair> attrs, Site site) {
  set_site(site);
  const OpDef& op = OpRegistry::get().lookup(name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: input {} is an empty Tensor{}", name, i, where_text()));
  }
  check_attrs(op, attrs);
  const AttrsRef all = attrs.empty() ? AttrsRef() : AttrsRef(std::move(attrs));
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  Tensors out(static_cast<size_t>(op.num_outputs(all.get())));
  apply(op, in, all.get(), out);
  return out;
}

}  // namespace berth
