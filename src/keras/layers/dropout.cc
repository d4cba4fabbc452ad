// Dropout.

#include "berth/keras/layers.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/noise_shape.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class DropoutBase final : public LayerBase {
 public:
  DropoutBase(double rate, const DropoutOptions& o,
              std::vector<int64_t> noise_shape, Site site)
      : LayerBase("Dropout", o.name, site),
        rate_(rate),
        seed_(o.seed),
        noise_shape_(std::move(noise_shape)) {
    if (!(rate_ >= 0 && rate_ < 1)) {
      fail_in(state(), "Dropout: rate is {}; expected 0 <= rate < 1", rate_);
    }
  }

  Tensors call(const Tensors& inputs, bool training) override {
    const Tensor& x = one_input(state(), inputs);
    if (!training || rate_ == 0) return {x};
    return {nn::dropout(x, rate_, {.seed = seed_, .noise_shape = noise_shape_},
                        site())};
  }

 private:
  const double rate_;
  const std::optional<int64_t> seed_;
  const std::vector<int64_t> noise_shape_;
};

// A list in which null stands for the input's length; null: none.
void noise_shape_field(Fields& f, std::vector<int64_t>& noise_shape) {
  const char* name = "noise_shape";
  if (!f.reading()) {
    std::vector<Config> dims;
    for (const int64_t d : noise_shape) {
      dims.push_back(d < 0 ? Config(nullptr) : Config(d));
    }
    return f.put(name, dims.empty() ? Config(nullptr) : Config(dims));
  }
  const auto given = f.get(name);
  if (!given) return;
  for (const Config& d : given->as_list()) {
    noise_shape.push_back(d.kind() == Config::Kind::kNull ? -1 : d.as_int());
  }
}
void dropout_fields(Fields& f, double& rate, std::vector<int64_t>& noise_shape,
                    DropoutOptions& o) {
  f.must("rate", rate);
  noise_shape_field(f, noise_shape);
  f("seed", o.seed);
}

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options, Site site)
    : Layer(dropout_with_noise_shape(rate, {}, std::move(options), site)) {}

Layer dropout_with_noise_shape(double rate, std::vector<int64_t> noise_shape,
                               DropoutOptions o, Site site) {
  const Layer layer = make_layer<DropoutBase>(rate, o, noise_shape, site);
  describe<dropout_fields>(layer, rate, std::move(noise_shape), std::move(o));
  return layer;
}

void add_dropout_classes(Classes& c) {
  c.layers["Dropout"] = &layer_of<dropout_with_noise_shape, dropout_fields>;
}

}  // namespace berth::keras
