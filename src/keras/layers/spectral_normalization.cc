// A layer whose kernel has norm 1 as a matrix.

#include "berth/keras/core_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

class SpectralNormalizationBase final : public LayerBase {
 public:
  SpectralNormalizationBase(Layer layer, const SpectralNormalizationOptions& o,
                            Site site)
      : LayerBase("SpectralNormalization", o.name, site),
        layer_(track(std::move(layer))),
        iterations_(o.power_iterations) {
    state().casts.weights = false;
    check_positive(state(), "power_iterations", iterations_);
  }

  void build(const std::vector<Shape>& inputs) override {
    const bool ids = layer_.base()->state().type == "Embedding";
    layer_.build(inputs, ids ? int32 : float32);
    for (const Variable& v : layer_.weights()) {
      const std::string& name = v.name();
      const std::string last = name.substr(name.rfind('/') + 1);
      if (last == "kernel" || last == "embeddings") kernel_ = v;
      if (kernel_.defined()) break;
    }
    if (!kernel_.defined() || kernel_.shape().rank() < 1) {
      fail_in(state(),
              "SpectralNormalization: layer \"{}\" has no weight "
              "\"kernel\" or \"embeddings\"; expected one that has",
              layer_.name());
    }
    const Shape& shape = kernel_.shape();
    columns_ = shape[shape.rank() - 1];
    u_ = add_weight("vector_u", {1, columns_},
                    initializers::TruncatedNormal({.stddev = 0.02}), false);
  }

  Tensors call(const Tensors& inputs, bool training) override {
    if (training) normalize();
    return layer_(inputs, training);
  }

  Tensors compute_mask(const Tensors& inputs, const Tensors& masks) override {
    return layer_.base()->compute_mask(inputs, masks);
  }

 private:
  static Tensor unit(const Tensor& x, Site site) {
    return math::l2_normalize(x, {}, 1e-12, site);
  }

  void normalize() {
    const Tensor kernel = stop_gradient(kernel_.value(site()), site());
    const Tensor w = reshape(kernel, {-1, columns_}, site());
    Tensor u = u_.value(site()), v;
    for (int64_t i = 0; i < iterations_; ++i) {
      v = unit(matmul(u, w, {.transpose_b = true}, site()), site());
      u = unit(matmul(v, w, {}, site()), site());
    }
    const Tensor sigma =
        matmul(matmul(v, w, {}, site()), u, {.transpose_b = true}, site());
    // A kernel of zeros stays one.
    const Tensor norm = reshape(sigma, {}, site());
    kernel_.assign(math::divide_no_nan(kernel, norm, site()), site());
    u_.assign(where(math::not_equal(norm, scalar_like(norm, 0), site()), u,
                    u_.value(site()), site()),
              site());
  }

  const Layer layer_;
  const int64_t iterations_;
  int64_t columns_ = 0;
  Variable kernel_, u_;
};

struct SpectralNormalizationArgs {
  std::optional<Layer> layer;
  SpectralNormalizationOptions o;
  void fields(Fields& f) {
    f.must("layer", layer);
    f("power_iterations", o.power_iterations);
    f("name", o.name);
  }
  Layer make(Site site) const { return SpectralNormalization(*layer, o, site); }
};

}  // namespace

SpectralNormalization::SpectralNormalization(Layer layer,
                                             SpectralNormalizationOptions o,
                                             Site site)
    : Layer(make_layer<SpectralNormalizationBase>(layer, o, site)) {
  describe(*this, SpectralNormalizationArgs{std::move(layer), std::move(o)});
}

void add_spectral_classes(Classes& c) {
  c.layers["SpectralNormalization"] = &layer_of<SpectralNormalizationArgs>;
}

}  // namespace berth::keras
