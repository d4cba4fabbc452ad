// TimeDistributed: a layer on each step.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/layers/rnn.h"

namespace berth::keras {

namespace {

class TimeDistributedBase final : public LayerBase {
 public:
  TimeDistributedBase(Layer layer, const NameOptions& o, Site site)
      : LayerBase("TimeDistributed", o.name, site),
        layer_(track(std::move(layer))) {}

  Tensors call(const Tensors& inputs, bool training) override {
    Tensors steps;
    for (const Tensor& x : inputs) {
      if (x.rank() < 3) {
        fail_in(state(),
                "TimeDistributed: an input is {}; expected [batch, "
                "time, ...] with something at each step",
                x.shape().str());
      }
      Shape flat = open(x.shape());
      const int64_t n = flat[0], t = flat[1];
      flat.erase(0);
      flat[0] = n < 0 || t < 0 ? kUnknownDim : n * t;
      steps.push_back(reshape(x, flat, site()));
    }
    Tensors y = layer_(steps, training);
    const Shape& x = inputs[0].shape();
    for (Tensor& t : y) {
      Shape apart = open(t.shape());
      apart[0] = x[1] < 0 ? kUnknownDim : x[1];
      apart.insert(0, x[0] < 0 ? kUnknownDim : x[0]);
      int unknown = 0;
      for (const int64_t dim : apart) unknown += dim < 0;
      if (unknown > 1) {
        fail_in(state(),
                "TimeDistributed: the input is {}; expected its batch "
                "or its time to be known",
                x.str());
      }
      t = reshape(t, apart, site());
    }
    return y;
  }

 private:
  static Shape open(Shape shape) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] < 0) shape[i] = kUnknownDim;
    }
    return shape;
  }
  const Layer layer_;
};

struct TimeDistributedArgs {
  std::optional<Layer> layer;
  NameOptions o;
  void fields(Fields& f) {
    f.must("layer", layer);
    f("name", o.name);
  }
  Layer make(Site site) const { return TimeDistributed(*layer, o, site); }
};

}  // namespace

TimeDistributed::TimeDistributed(Layer layer, NameOptions options, Site site)
    : Layer(std::make_shared<TimeDistributedBase>(layer, options, site)) {
  describe(*this, TimeDistributedArgs{layer, options});
}

void add_time_distributed_classes(Classes& c) {
  c.layers["TimeDistributed"] = &layer_of<TimeDistributedArgs>;
}

}  // namespace berth::keras
