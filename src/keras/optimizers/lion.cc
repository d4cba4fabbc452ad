// Lion.

#include "berth/keras/optimizers.h"
#include "berth/ops/math.h"
#include "keras/optimizers/optimizer_config.h"
#include "op/dispatcher.h"

namespace berth::keras::optimizers {

namespace {

class LionBase final : public OptimizerBase {
 public:
  LionBase(LearningRate rate, const LionOptions& options)
      : OptimizerBase("lion", std::move(rate), common_of(options)),
        o_(options) {
    check_option("beta_1", o_.beta_1, 0, 1);
    check_option("beta_2", o_.beta_2, 0, 1);
  }

 private:
  std::vector<const char*> slot_names() const override { return {"m"}; }
  void begin(DType dtype, Site site) override { rate_ = rate(dtype, site); }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const Tensor m = slots[0].value(site);
    const Tensor mixed = m * o_.beta_1 + grad * (1 - o_.beta_1);
    v.assign_sub(rate_ * math::sign(mixed, site), site);
    slots[0].assign(m * o_.beta_2 + grad * (1 - o_.beta_2), site);
  }

  const LionOptions o_;
  Tensor rate_;
};

}  // namespace

Lion::Lion(LearningRate learning_rate, LionOptions options)
    : Optimizer(
          make_optimizer<Lion, LionBase>("Lion", learning_rate, options)) {}

void add_lion_classes(Classes& c) {
  c.optimizers["Lion"] = &made_of<Optimizer, OptimizerArgs<Lion, LionOptions>>;
}

}  // namespace berth::keras::optimizers
