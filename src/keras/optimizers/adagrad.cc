// Adagrad.

#include "berth/keras/optimizers.h"
#include "keras/optimizers/optimizer_config.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class AdagradBase final : public OptimizerBase {
 public:
  AdagradBase(LearningRate rate, const AdagradOptions& options)
      : OptimizerBase("adagrad", std::move(rate), common_of(options)),
        o_(options) {
    check_option("initial_accumulator_value", o_.initial_accumulator_value);
    check_option("epsilon", o_.epsilon);
  }

 private:
  std::vector<const char*> slot_names() const override {
    return {"accumulator"};
  }
  double initial_slot_value(size_t) const override {
    return o_.initial_accumulator_value;
  }
  void begin(DType dtype, Site site) override {
    rate_ = rate(dtype, site);
    epsilon_ = scalar(o_.epsilon, dtype);
  }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    training::apply_adagrad(v.handle(), slots[0].handle(), rate_, epsilon_,
                            grad);
  }

  const AdagradOptions o_;
  Tensor rate_, epsilon_;
};

}  // namespace

Adagrad::Adagrad(LearningRate learning_rate, AdagradOptions options)
    : Optimizer(make_optimizer<Adagrad, AdagradBase>("Adagrad", learning_rate,
                                                     options)) {}

void add_adagrad_classes(Classes& c) {
  c.optimizers["Adagrad"] =
      &made_of<Optimizer, OptimizerArgs<Adagrad, AdagradOptions>>;
}

}  // namespace berth::keras::optimizers
