// SGD.

#include "berth/keras/optimizers.h"
#include "keras/optimizers/optimizer_config.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class SGDBase final : public OptimizerBase {
 public:
  SGDBase(LearningRate rate, const SGDOptions& options)
      : OptimizerBase("sgd", std::move(rate), common_of(options)), o_(options) {
    check_option("momentum", o_.momentum, 0, 1);
  }

 private:
  std::vector<const char*> slot_names() const override {
    if (o_.momentum == 0) return {};
    return {"momentum"};
  }
  void begin(DType dtype, Site site) override {
    rate_ = rate(dtype, site);
    momentum_ = scalar(o_.momentum, dtype);
  }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    if (slots.empty()) {
      training::apply_gradient_descent(v.handle(), rate_, grad);
    } else {
      training::apply_keras_momentum(v.handle(), slots[0].handle(), rate_, grad,
                                     momentum_, o_.nesterov);
    }
  }

  const SGDOptions o_;
  Tensor rate_, momentum_;
};

}  // namespace

SGD::SGD(LearningRate learning_rate, SGDOptions options)
    : Optimizer(make_optimizer<SGD, SGDBase>("SGD", learning_rate, options)) {}

void add_sgd_classes(Classes& c) {
  c.optimizers["SGD"] = &made_of<Optimizer, OptimizerArgs<SGD, SGDOptions>>;
}

}  // namespace berth::keras::optimizers
