#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "keras/classes.h"
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

struct SGDArgs {
  double learning_rate = 0.01;
  SGDOptions o;
  void fields(Fields& f) {
    f("learning_rate", learning_rate);
    f("momentum", o.momentum);
    f("nesterov", o.nesterov);
  }
  Optimizer make() const { return SGD(learning_rate, o); }
};

}  // namespace

SGD::SGD(double learning_rate, SGDOptions options)
    : Optimizer(std::make_shared<SGDBase>(learning_rate, options)) {
  base()->description = description("SGD", SGDArgs{learning_rate, options});
}

void add_sgd_class(Classes& c);
void add_sgd_class(Classes& c) {
  c.optimizers["SGD"] = &made_of<Optimizer, SGDArgs>;
}

}  // namespace berth::keras::optimizers
