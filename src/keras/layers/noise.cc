// Dropout of whole channels, and Gaussian noise.

#include <cmath>

#include "berth/keras/core_layers.h"
#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

// Does nothing outside training; else what a kind of it says.
class NoiseBase : public LayerBase {
 public:
  NoiseBase(const char* type, double amount, double limit,
            const DropoutOptions& o, Site site)
      : LayerBase(type, o.name, site), amount_(amount), seed_(o.seed) {
    if (amount >= 0 && amount < limit) return;
    fail_in(state(), "{}: {} is {}; expected 0 or more and below {}", type,
            limit == 1 ? "rate" : "stddev", amount, limit);
  }
  Tensors call(const Tensors& inputs, bool training) override {
    const Tensor& x = one_input(state(), inputs);
    if (!training || amount_ == 0) return {x};
    return {disturb(x)};
  }

 protected:
  virtual Tensor disturb(const Tensor& x) = 0;
  const double amount_;
  const std::optional<int64_t> seed_;
};

class SpatialDropoutBase final : public NoiseBase {
 public:
  SpatialDropoutBase(const char* type, int dims, double rate,
                     const DropoutOptions& o, Site site)
      : NoiseBase(type, rate, 1, o, site), dims_(dims) {}

 protected:
  Tensor disturb(const Tensor& x) override {
    input_of_rank(state(), {x}, dims_ + 2, "[batch, pixels..., channels]");
    std::vector<int64_t> noise(static_cast<size_t>(x.rank()), 1);
    noise.front() = noise.back() = -1;
    return nn::dropout(x, amount_, {.seed = seed_, .noise_shape = noise},
                       site());
  }

 private:
  const int dims_;
};

class GaussianBase final : public NoiseBase {
 public:
  GaussianBase(bool factor, double amount, const DropoutOptions& o, Site site)
      : NoiseBase(factor ? "GaussianDropout" : "GaussianNoise", amount,
                  factor ? 1 : 1e30, o, site),
        factor_(factor) {}

 protected:
  Tensor disturb(const Tensor& x) override {
    if (!x.shape().is_fully_defined()) {
      // Only what is known can be drawn; a model is described without noise.
      fail_in(state(),
              "{}: the input is {}; expected known dimensions in training",
              state().type, x.shape().str());
    }
    const double stddev =
        factor_ ? std::sqrt(amount_ / (1 - amount_)) : amount_;
    const DType drawn = weights_dtype_for(x);
    Tensor noise = random::normal(x.shape(),
                                  {.mean = factor_ ? 1.0 : 0.0,
                                   .stddev = stddev,
                                   .dtype = drawn,
                                   .seed = seed_},
                                  site());
    if (drawn != x.dtype()) noise = math::cast(noise, x.dtype(), site());
    return factor_ ? x * noise : x + noise;
  }

 private:
  const bool factor_;
};

// Puts what SELU gives far below 0 in place of elements, then scales and moves
// all so that mean 0 and variance 1 stay.
class AlphaDropoutBase final : public NoiseBase {
 public:
  AlphaDropoutBase(double rate, const DropoutOptions& o, Site site)
      : NoiseBase("AlphaDropout", rate, 1, o, site) {}

 protected:
  Tensor disturb(const Tensor& x) override {
    constexpr double kLowest =
        -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
    const double keep = 1 - amount_;
    const double a = 1 / std::sqrt(keep * (1 + amount_ * kLowest * kLowest));
    // keep / (1 - rate) = 1 where kept.
    const Tensor kept =
        nn::dropout(ones_like(x, site()), amount_, {.seed = seed_}, site()) *
        keep;
    return (x * kept + (1.0 - kept) * kLowest) * a - a * kLowest * amount_;
  }
};

void rate_fields(Fields& f, double& rate, DropoutOptions& o) {
  f.must("rate", rate);
  f("seed", o.seed);
}
void stddev_fields(Fields& f, double& stddev, DropoutOptions& o) {
  f.must("stddev", stddev);
  f("seed", o.seed);
}

Layer spatial_dropout(const char* type, int dims, double rate, DropoutOptions o,
                      Site site) {
  const Layer layer = make_layer<SpatialDropoutBase>(type, dims, rate, o, site);
  describe<rate_fields>(layer, rate, std::move(o));
  return layer;
}

}  // namespace

SpatialDropout1D::SpatialDropout1D(double rate, DropoutOptions o, Site site)
    : Layer(spatial_dropout("SpatialDropout1D", 1, rate, std::move(o), site)) {}
SpatialDropout2D::SpatialDropout2D(double rate, DropoutOptions o, Site site)
    : Layer(spatial_dropout("SpatialDropout2D", 2, rate, std::move(o), site)) {}
SpatialDropout3D::SpatialDropout3D(double rate, DropoutOptions o, Site site)
    : Layer(spatial_dropout("SpatialDropout3D", 3, rate, std::move(o), site)) {}
AlphaDropout::AlphaDropout(double rate, DropoutOptions o, Site site)
    : Layer(
          described<AlphaDropoutBase, rate_fields>(site, rate, std::move(o))) {}
GaussianNoise::GaussianNoise(double stddev, DropoutOptions o, Site site)
    : Layer(make_layer<GaussianBase>(false, stddev, o, site)) {
  describe<stddev_fields>(*this, stddev, std::move(o));
}
GaussianDropout::GaussianDropout(double rate, DropoutOptions o, Site site)
    : Layer(make_layer<GaussianBase>(true, rate, o, site)) {
  describe<rate_fields>(*this, rate, std::move(o));
}

void add_noise_classes(Classes& c) {
  c.layers["SpatialDropout3D"] = &layer_of<SpatialDropout3D, rate_fields>;
  c.layers["AlphaDropout"] = &layer_of<AlphaDropout, rate_fields>;
  c.layers["SpatialDropout1D"] = &layer_of<SpatialDropout1D, rate_fields>;
  c.layers["SpatialDropout2D"] = &layer_of<SpatialDropout2D, rate_fields>;
  c.layers["GaussianNoise"] = &layer_of<GaussianNoise, stddev_fields>;
  c.layers["GaussianDropout"] = &layer_of<GaussianDropout, rate_fields>;
}

}  // namespace berth::keras
