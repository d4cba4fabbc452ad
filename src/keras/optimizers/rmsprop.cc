// RMSprop.

#include "berth/keras/optimizers.h"
#include "keras/optimizers/optimizer_config.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class RMSpropBase final : public OptimizerBase {
 public:
  RMSpropBase(LearningRate rate, const RMSpropOptions& options)
      : OptimizerBase("rmsprop", std::move(rate), common_of(options)),
        o_(options) {
    check_option("rho", o_.rho, 0, 1);
    check_option("momentum", o_.momentum, 0, 1);
    check_option("epsilon", o_.epsilon);
  }

 private:
  std::vector<const char*> slot_names() const override {
    if (o_.centered) return {"velocity", "momentum", "average_gradient"};
    return {"velocity", "momentum"};
  }
  void begin(DType dtype, Site site) override {
    s_.lr = rate(dtype, site);
    s_.rho = scalar(o_.rho, dtype);
    s_.momentum = scalar(o_.momentum, dtype);
    s_.epsilon = scalar(o_.epsilon, dtype);
  }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Tensor &ms = slots[0].handle(), &mom = slots[1].handle();
    if (o_.centered) {
      training::apply_centered_rms_prop(v.handle(), slots[2].handle(), ms, mom,
                                        s_, grad);
    } else {
      training::apply_rms_prop(v.handle(), ms, mom, s_, grad);
    }
  }

  const RMSpropOptions o_;
  training::RmsPropScalars s_;
};

}  // namespace

RMSprop::RMSprop(LearningRate learning_rate, RMSpropOptions options)
    : Optimizer(make_optimizer<RMSprop, RMSpropBase>("RMSprop", learning_rate,
                                                     options)) {}

void add_rmsprop_classes(Classes& c) {
  c.optimizers["RMSprop"] =
      &made_of<Optimizer, OptimizerArgs<RMSprop, RMSpropOptions>>;
}

}  // namespace berth::keras::optimizers
