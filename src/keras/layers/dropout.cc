#include <fmt/format.h>

#include "berth/keras/layers.h"
#include "berth/ops/nn.h"
#include "keras/classes.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

class DropoutBase final : public LayerBase {
 public:
  DropoutBase(double rate, const DropoutOptions& o, Site site)
      : LayerBase("Dropout", o.name, site), rate_(rate), seed_(o.seed) {
    if (!(rate_ >= 0 && rate_ < 1)) {
      fail(fmt::format("Dropout: rate is {}; expected 0 <= rate < 1", rate_));
    }
  }

  Tensors call(const Tensors& inputs, bool training) override {
    const Tensor& x = one_input(state(), inputs);
    if (!training || rate_ == 0) return {x};
    return {nn::dropout(x, rate_, {.seed = seed_}, site())};
  }

 private:
  const double rate_;
  const std::optional<int64_t> seed_;
};

struct DropoutArgs {
  double rate = 0;
  DropoutOptions o;
  void fields(Fields& f) {
    f.must("rate", rate);
    f("seed", o.seed);
    f("name", o.name);
  }
  Layer make(Site site) const { return Dropout(rate, o, site); }
};

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options, Site site)
    : Layer(std::make_shared<DropoutBase>(rate, options, site)) {
  describe(*this, DropoutArgs{rate, std::move(options)});
}

void add_dropout_classes(Classes& c);
void add_dropout_classes(Classes& c) {
  c.layers["Dropout"] = &layer_of<DropoutArgs>;
}

}  // namespace berth::keras
