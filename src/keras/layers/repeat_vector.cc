// RepeatVector.

#include "berth/keras/core_layers.h"
#include "berth/ops/array.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class RepeatVectorBase final : public LayerBase {
 public:
  RepeatVectorBase(int64_t times, const NameOptions& o, Site site)
      : LayerBase("RepeatVector", o.name, site), times_(times) {
    check_positive(state(), "n", times_);
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = input_of_rank(state(), inputs, 2, "[batch, channels]");
    return {tile(expand_dims(x, 1, site()), {1, times_, 1}, site())};
  }

 private:
  const int64_t times_;
};
void repeat_vector_fields(Fields& f, int64_t& n, NameOptions&) {
  f.must("n", n);
}

}  // namespace

RepeatVector::RepeatVector(int64_t times, NameOptions o, Site site)
    : Layer(described<RepeatVectorBase, repeat_vector_fields>(site, times,
                                                              std::move(o))) {}

void add_repeat_vector_classes(Classes& c) {
  c.layers["RepeatVector"] = &layer_of<RepeatVector, repeat_vector_fields>;
}

}  // namespace berth::keras
