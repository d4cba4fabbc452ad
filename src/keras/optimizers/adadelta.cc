// Adadelta.

#include "berth/keras/optimizers.h"
#include "berth/ops/math.h"
#include "keras/optimizers/optimizer_config.h"
#include "op/dispatcher.h"

namespace berth::keras::optimizers {

namespace {

class AdadeltaBase final : public OptimizerBase {
 public:
  AdadeltaBase(LearningRate rate, const AdadeltaOptions& options)
      : OptimizerBase("adadelta", std::move(rate), common_of(options)),
        o_(options) {
    check_option("rho", o_.rho, 0, 1);
    check_option("epsilon", o_.epsilon);
  }

 private:
  std::vector<const char*> slot_names() const override {
    return {"accumulated_gradient", "accumulated_delta"};
  }
  void begin(DType dtype, Site site) override { rate_ = rate(dtype, site); }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const Tensor of_grad = mixed(slots[0].value(site), grad);
    const Tensor deltas = slots[1].value(site);
    const Tensor delta = grad * rms(deltas) / rms(of_grad);
    slots[0].assign(of_grad, site);
    slots[1].assign(mixed(deltas, delta), site);
    v.assign_sub(rate_ * delta, site);
  }
  Tensor mixed(const Tensor& mean, const Tensor& x) const {
    return mean * o_.rho + x * x * (1 - o_.rho);
  }
  Tensor rms(const Tensor& x) const {
    return math::sqrt(x + o_.epsilon, t_state.site);
  }

  const AdadeltaOptions o_;
  Tensor rate_;
};

}  // namespace

Adadelta::Adadelta(LearningRate learning_rate, AdadeltaOptions options)
    : Optimizer(make_optimizer<Adadelta, AdadeltaBase>(
          "Adadelta", learning_rate, options)) {}

void add_adadelta_classes(Classes& c) {
  c.optimizers["Adadelta"] =
      &made_of<Optimizer, OptimizerArgs<Adadelta, AdadeltaOptions>>;
}

}  // namespace berth::keras::optimizers
