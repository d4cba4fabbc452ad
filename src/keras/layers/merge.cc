#include <fmt/format.h>

#include "berth/keras/layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class AddBase final : public LayerBase {
 public:
  AddBase(const NameOptions& o, Site site) : LayerBase("Add", o.name, site) {}

  Tensors call(const Tensors& x, bool) override {
    Tensor sum = x[0];
    for (size_t i = 1; i < x.size(); ++i) {
      if (!x[i].shape().compatible_with(x[0].shape())) {
        fail(fmt::format("Add: inputs are {} and {}; expected equal shapes",
                         x[0].shape().str(), x[i].shape().str()));
      }
      sum = math::add(sum, x[i], site());
    }
    return {sum};
  }
};

class ConcatenateBase final : public LayerBase {
 public:
  ConcatenateBase(const ConcatenateOptions& o, Site site)
      : LayerBase("Concatenate", o.name, site), axis_(o.axis) {}

  Tensors call(const Tensors& x, bool) override {
    return {concat(x, axis_, site())};
  }

 private:
  const int64_t axis_;
};

}  // namespace

Add::Add(NameOptions options, Site site)
    : Layer(std::make_shared<AddBase>(options, site)) {}
Concatenate::Concatenate(ConcatenateOptions options, Site site)
    : Layer(std::make_shared<ConcatenateBase>(options, site)) {}

}  // namespace berth::keras
