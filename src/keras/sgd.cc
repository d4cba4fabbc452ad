#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "keras/optimizer_base.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class SGDBase final : public OptimizerBase {
 public:
  SGDBase(double rate, SGDOptions options)
      : OptimizerBase("sgd", rate), o_(options) {
    if (!(o_.momentum >= 0 && o_.momentum <= 1)) {
      throw errors::InvalidArgument(
          fmt::format("SGD: momentum is {}; expected 0 to 1", o_.momentum));
    }
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

SGD::SGD(double learning_rate, SGDOptions options)
    : Optimizer(std::make_shared<SGDBase>(learning_rate, options)) {}

}  // namespace berth::keras::optimizers
