// RandomErasing: fills a rectangle of each image.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "keras/layers/augment.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class ErasingBase final : public AugmentBase {
 public:
  ErasingBase(const Factor& f, const RandomErasingOptions& o, Site site)
      : AugmentBase("RandomErasing", o.name, o.seed, site),
        values_(o.value_range),
        range_(range_of("factor", f, 0, 1)),
        scale_(range_of("scale", o.scale, 0, 1)),
        fill_(o.fill_value),
        seed_(o.seed) {
    check_range(values_);
  }

 protected:
  Tensor change(const Tensor& x, bool training) override {
    if (!training) return x;
    const Tensor inside =
        math::logical_and(between(x, 1), between(x, 2), site());
    const Tensor chosen = draw(x, {0, 1}) < draw(x, range_);
    const Tensor filling =
        fill_
            ? fill(x.shape(), *fill_, float32, site())
            : random::normal(x.shape(), {.seed = seed_}, site()) * values_.high;
    return where(math::logical_and(inside, chosen, site()),
                 cut(filling, values_), x, site());
  }

 private:
  // Which places along an axis lie in the rectangle, per image.
  Tensor between(const Tensor& x, int axis) const {
    const int64_t length = x.shape()[axis];
    const Tensor part =
        math::sqrt(draw(x, scale_), site()) * static_cast<double>(length);
    const Tensor from = draw(x, {0, 1}) * (static_cast<double>(length) - part);
    Shape shape{1, 1, 1, 1};
    shape[axis] = length;
    const Tensor at =
        reshape(range(0, length, 1, float32, site()), shape, site());
    return math::logical_and(at >= from, at < from + part, site());
  }

  const ValueRange values_;
  const Range range_, scale_;
  const std::optional<double> fill_;
  const std::optional<int64_t> seed_;
};
void random_erasing_fields(Fields& f, Factor& factor, RandomErasingOptions& o) {
  if (f.reading()) factor = {1, 1};
  factor_field(f, "factor", factor);
  factor_field(f, "scale", o.scale);
  f("fill_value", o.fill_value);
  value_range_field(f, o.value_range);
  f("seed", o.seed);
}

}  // namespace

RandomErasing::RandomErasing(Factor f, RandomErasingOptions o, Site site)
    : Layer(described<ErasingBase, random_erasing_fields>(site, f,
                                                          std::move(o))) {}
void add_random_erasing_classes(Classes& c) {
  c.layers["RandomErasing"] = &layer_of<RandomErasing, random_erasing_fields>;
}

}  // namespace berth::keras
