// Ftrl.

#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "keras/optimizers/optimizer_config.h"
#include "op/dispatcher.h"

namespace berth::keras::optimizers {

namespace {

class FtrlBase final : public OptimizerBase {
 public:
  FtrlBase(LearningRate rate, const FtrlOptions& options)
      : OptimizerBase("ftrl", std::move(rate), common_of(options)),
        o_(options) {
    check_option("initial_accumulator_value", o_.initial_accumulator_value);
    check_option("-learning_rate_power", -o_.learning_rate_power);
    check_option("l1_regularization_strength", o_.l1_regularization_strength);
    check_option("l2_regularization_strength", o_.l2_regularization_strength);
    check_option("l2_shrinkage_regularization_strength",
                 o_.l2_shrinkage_regularization_strength);
    check_option("beta", o_.beta);
  }

 private:
  std::vector<const char*> slot_names() const override {
    return {"accumulator", "linear"};
  }
  double initial_slot_value(size_t slot) const override {
    return slot == 0 ? o_.initial_accumulator_value : 0;
  }
  void begin(DType dtype, Site site) override { rate_ = rate(dtype, site); }

  Tensor power(const Tensor& accumulator) const {
    const Site site = t_state.site;
    if (o_.learning_rate_power == -0.5) return math::sqrt(accumulator, site);
    return math::pow(accumulator,
                     scalar(-o_.learning_rate_power, accumulator.dtype()),
                     site);
  }

  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const double l1 = o_.l1_regularization_strength;
    const Tensor now = v.value(site), before = slots[0].value(site);
    const Tensor l2 = o_.beta / (2.0 * rate_) + o_.l2_regularization_strength;
    const double shrinks = 2 * o_.l2_shrinkage_regularization_strength;
    const Tensor shrunk = shrinks > 0 ? grad + now * shrinks : grad;
    const Tensor accumulator = before + grad * grad;
    const Tensor after = power(accumulator);
    const Tensor linear =
        slots[1].value(site) + shrunk - (after - power(before)) / rate_ * now;
    const Tensor quadratic = after / rate_ + 2.0 * l2;
    v.assign((clip_by_value(linear, -l1, l1, site) - linear) / quadratic, site);
    slots[0].assign(accumulator, site);
    slots[1].assign(linear, site);
  }

  const FtrlOptions o_;
  Tensor rate_;
};

}  // namespace

Ftrl::Ftrl(LearningRate learning_rate, FtrlOptions options)
    : Optimizer(
          make_optimizer<Ftrl, FtrlBase>("Ftrl", learning_rate, options)) {}

void add_ftrl_classes(Classes& c) {
  c.optimizers["Ftrl"] = &made_of<Optimizer, OptimizerArgs<Ftrl, FtrlOptions>>;
}

}  // namespace berth::keras::optimizers
