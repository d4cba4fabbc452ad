// Flatten and Reshape.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "berth/errors.h"
#include "berth/keras/layers.h"
#include "berth/ops/array.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

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
      : LayerBase("Reshape", o.name, site), target_(target) {
    int open = 0;
    bool good = target_.rank() < kMaxRank;
    for (int64_t dim : target_) {
      good = good && dim >= kUnknownDim;
      open += dim == kUnknownDim;
    }
    if (!good || open > 1 || !can_be(target_, float64)) {
      fail_in(state(),
              "Reshape: the target is [{}]; expected at most {} "
              "dimensions, each 0 or more and fewer than 2^62 bytes "
              "together, and at most one -1",
              fmt::join(target_, ", "), kMaxRank - 1);
    }
  }

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
    Shape example = x;
    example.erase(0);
    const int64_t have = example.num_elements();
    Shape target = target_;
    if (have < 0) {
      check_partly_known(x, example);
      return target;
    }
    for (int i = 0; i < target.rank(); ++i) {
      if (target[i] >= 0) continue;
      // What is left for the open one; of nothing, nothing.
      target[i] = 1;
      const int64_t rest = target.num_elements();
      target[i] = rest == 0 ? 0 : have / rest;
    }
    if (target.num_elements() != have) {
      fail_in(state(),
              "Reshape: the input is {}, {} values each; the target "
              "{} holds another number",
              x.str(), have, target_.str());
    }
    return target;
  }
  // What is open in the input can be any number, but no fraction.
  void check_partly_known(const Shape& x, const Shape& example) const {
    const int64_t want = target_.num_elements();
    int64_t known = 1;
    for (const int64_t dim : example) known *= dim >= 0 ? dim : 1;
    if (want < 0 || (known == 0 ? want == 0 : want % known == 0)) return;
    fail_in(state(),
            "Reshape: the input is {}, a multiple of {} values each; "
            "the target {} holds {}, which is none",
            x.str(), known, target_.str(), want);
  }
  const Shape target_;
};

struct ReshapeArgs {
  std::vector<int64_t> target;
  NameOptions o;
  void fields(Fields& f) {
    f.must("target_shape", target);
    f("name", o.name);
  }
  Layer make(Site site) const {
    if (target.size() > kMaxRank) {
      throw errors::InvalidArgument(
          fmt::format("the config of Reshape: target_shape has {} dimensions; "
                      "expected at most {}",
                      target.size(), kMaxRank - 1));
    }
    Shape shape;
    for (int64_t dim : target) shape.insert(shape.rank(), dim);
    return Reshape(shape, o, site);
  }
};

}  // namespace

Flatten::Flatten(NameOptions options, Site site)
    : Layer(described<FlattenBase, name_only>(site, std::move(options))) {}
Reshape::Reshape(Shape target, NameOptions options, Site site)
    : Layer(std::make_shared<ReshapeBase>(target, options, site)) {
  describe(*this,
           ReshapeArgs{{target.begin(), target.end()}, std::move(options)});
}

void add_reshape_classes(Classes& c) {
  c.layers["Flatten"] = &layer_of<Flatten, name_only>;
  c.layers["Reshape"] = &layer_of<ReshapeArgs>;
}

}  // namespace berth::keras
