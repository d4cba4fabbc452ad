// Lambda: a function as a layer.

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/core_layers.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class LambdaBase final : public LayerBase {
 public:
  LambdaBase(Lambda::ListFn fn, const NameOptions& o, Site site)
      : LayerBase("Lambda", o.name, site), fn_(std::move(fn)) {
    if (!fn_) fail("Lambda: got an empty function; expected one to call");
  }
  Tensors call(const Tensors& x, bool) override { return fn_(x); }

 private:
  const Lambda::ListFn fn_;
};

// Makes a function of a list from one of a single tensor.
Lambda::ListFn listed(Lambda::Fn fn, Site site) {
  if (!fn) return {};
  return [fn = std::move(fn), site](const Tensors& x) -> Tensors {
    if (x.size() != 1) {
      throw errors::InvalidArgument(fmt::format(
          "Lambda: its function takes one tensor, got {}{}; expected a "
          "function of Tensors",
          x.size(), where_text(nullptr, site)));
    }
    return {fn(x[0])};
  };
}

}  // namespace

Lambda::Lambda(Fn fn, NameOptions o, Site site)
    : Layer(make_layer<LambdaBase>(listed(std::move(fn), site), o, site)) {
  set_own_policy(*this, o);
}
Lambda::Lambda(ListFn fn, NameOptions o, Site site)
    : Layer(make_layer<LambdaBase>(std::move(fn), o, site)) {
  set_own_policy(*this, o);
}

}  // namespace berth::keras
