// Dense.

#include "berth/keras/layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class DenseBase final : public LayerBase {
 public:
  DenseBase(int64_t units, DenseOptions options, Site site)
      : LayerBase("Dense", options.name, site),
        units_(units),
        options_(std::move(options)) {
    check_positive(state(), "units", units_);
    check_activation(state(), options_.activation);
    set_activity_regularizer(options_.activity_regularizer);
  }

  void build(const std::vector<Shape>& inputs) override {
    in_ = known_channels(state(), inputs[0]);
    kernel_ = add_weight("kernel", {in_, units_}, options_.kernel_initializer,
                         {.regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    if (options_.use_bias) {
      bias_ = add_weight("bias", {units_}, options_.bias_initializer,
                         {.regularizer = options_.bias_regularizer,
                          .constraint = options_.bias_constraint});
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    check_channels(state(), x, in_);
    Tensor y = x.rank() == 1
                   ? squeeze(matmul(expand_dims(x, 0, site()),
                                    kernel_.value(site()), {}, site()),
                             {0}, site())
                   : matmul(x, kernel_.value(site()), {}, site());
    if (options_.use_bias) y = nn::bias_add(y, bias_.value(site()), site());
    return {apply_activation(options_.activation, y, site())};
  }

 private:
  const int64_t units_;
  const DenseOptions options_;
  int64_t in_ = 0;
  Variable kernel_, bias_;
};

void dense_fields(Fields& f, int64_t& units, DenseOptions& o) {
  f.must("units", units);
  f.activation("activation", o.activation);
  f("use_bias", o.use_bias);
  f("kernel_initializer", o.kernel_initializer);
  f("bias_initializer", o.bias_initializer);
  f("kernel_regularizer", o.kernel_regularizer);
  f("bias_regularizer", o.bias_regularizer);
  f.unless_none("activity_regularizer", o.activity_regularizer);
  f("kernel_constraint", o.kernel_constraint);
  f("bias_constraint", o.bias_constraint);
}

}  // namespace

Dense::Dense(int64_t units, DenseOptions options, Site site)
    : Layer(described<DenseBase, dense_fields>(site, units,
                                               std::move(options))) {}

void add_dense_classes(Classes& c) {
  c.layers["Dense"] = &layer_of<Dense, dense_fields>;
}

}  // namespace berth::keras
