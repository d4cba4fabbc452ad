// RandomGaussianBlur.

#include "berth/ops/array.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "keras/layers/augment.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class GaussianBlurBase final : public AugmentBase {
 public:
  GaussianBlurBase(const Factor& f, const RandomGaussianBlurOptions& o,
                   Site site)
      : AugmentBase("RandomGaussianBlur", o.name, o.seed, site),
        values_(o.value_range),
        range_(range_of("factor", f, 0, 1)),
        sigma_(range_of("sigma", o.sigma, 0, 1)),
        size_(o.kernel_size) {
    check_range(values_);
    if (size_.h % 2 == 1 && size_.w % 2 == 1 && size_.h > 0 && size_.w > 0) {
      return;
    }
    fail_in(state(),
            "RandomGaussianBlur: kernel_size is {} x {}; expected odd numbers",
            size_.h, size_.w);
  }

 protected:
  Tensor change(const Tensor& x, bool training) override {
    if (!training) return x;
    const int64_t c = x.shape()[3];
    check_positive(state(), "the number of channels", c);
    const Tensor kernel =
        bell(x, size_.h, {size_.h, 1}) * bell(x, size_.w, {1, size_.w});
    const Tensor blurred = nn::depthwise_conv2d(
        x,
        tile(reshape(kernel, {size_.h, size_.w, 1, 1}, site()), {1, 1, c, 1},
             site()),
        {.padding = "SAME"}, site());
    const Tensor chosen = draw(x, {0, 1}) < draw(x, range_);
    return cut(where(chosen, blurred, x, site()), values_);
  }

 private:
  // Values of a normal density of a drawn deviation, of sum 1.
  Tensor bell(const Tensor& x, int64_t size, const Shape& shape) const {
    const Tensor drawn = slice(draw(x, sigma_, 2), {0, 0}, {1, 1}, site());
    const Tensor sigma = reshape(drawn, {1}, site()) + 1e-6;
    const Tensor at =
        range(0, size, 1, float32, site()) - static_cast<double>(size - 1) / 2;
    const Tensor values =
        math::exp(math::square(at / sigma, site()) * -0.5, site());
    return reshape(values / math::reduce_sum(values, {}, site()), shape,
                   site());
  }

  const ValueRange values_;
  const Range range_, sigma_;
  const Size2D size_;
};
void random_gaussian_blur_fields(Fields& f, Factor& factor,
                                 RandomGaussianBlurOptions& o) {
  if (f.reading()) factor = {1, 1};
  factor_field(f, "factor", factor);
  f("kernel_size", o.kernel_size);
  factor_field(f, "sigma", o.sigma);
  value_range_field(f, o.value_range);
  f("seed", o.seed);
}

}  // namespace

RandomGaussianBlur::RandomGaussianBlur(Factor f, RandomGaussianBlurOptions o,
                                       Site site)
    : Layer(described<GaussianBlurBase, random_gaussian_blur_fields>(
          site, f, std::move(o))) {}
void add_random_gaussian_blur_classes(Classes& c) {
  c.layers["RandomGaussianBlur"] =
      &layer_of<RandomGaussianBlur, random_gaussian_blur_fields>;
}

}  // namespace berth::keras
