#include <fmt/format.h>

#include "berth/keras/layers.h"
#include "berth/ops/array.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class FlattenBase final : public LayerBase {
 public:
  FlattenBase(const NameOptions& o, Site site)
      : LayerBase("Flatten", o.name, site) {}

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (x.rank() == 0)
      fail("Flatten: the input is a scalar; expected [n, ...]");
    int64_t width = 1;
    for (int i = 1; i < x.rank(); ++i) {
      if (x.shape()[i] < 0) width = kUnknownDim;
      if (width >= 0) width *= x.shape()[i];
    }
    // An empty batch leaves reshape nothing to find the other length from.
    const int64_t n = x.shape()[0];
    if (width < 0) return {reshape(x, {n, kUnknownDim}, site())};
    return {reshape(x, {n < 0 ? kUnknownDim : n, width}, site())};
  }
};

class ReshapeBase final : public LayerBase {
 public:
  ReshapeBase(const Shape& target, const NameOptions& o, Site site)
      : LayerBase("Reshape", o.name, site), target_(target) {}

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (x.rank() == 0)
      fail("Reshape: the input is a scalar; expected [n, ...]");
    Shape shape = known_target(x.shape());
    shape.insert(0, x.shape()[0] < 0 ? kUnknownDim : x.shape()[0]);
    return {reshape(x, shape, site())};
  }

 private:
  // The target with its -1 replaced, since the batch may need that place.
  Shape known_target(const Shape& x) {
    int64_t have = 1, want = 1;
    int open = -1;
    for (int i = 1; i < x.rank(); ++i) have = x[i] < 0 ? 0 : have * x[i];
    Shape target = target_;
    for (int i = 0; i < target.rank(); ++i) {
      if (target[i] >= 0) {
        want *= target[i];
      } else if (open >= 0) {
        fail(fmt::format("Reshape: the target is {}; expected at most one -1",
                         target_.str()));
      } else {
        open = i;
      }
    }
    if (have == 0) return target;
    if (open >= 0 && want > 0 && have % want == 0) target[open] = have / want;
    if (target.num_elements() != have) {
      fail(
          fmt::format("Reshape: the input is {}, {} values each; the target "
                      "{} holds another number",
                      x.str(), have, target_.str()));
    }
    return target;
  }
  const Shape target_;
};

}  // namespace

Flatten::Flatten(NameOptions options, Site site)
    : Layer(std::make_shared<FlattenBase>(options, site)) {}
Reshape::Reshape(Shape target, NameOptions options, Site site)
    : Layer(std::make_shared<ReshapeBase>(target, options, site)) {}

}  // namespace berth::keras
