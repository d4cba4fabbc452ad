#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "keras/classes.h"
#include "keras/optimizer_base.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class RMSpropBase final : public OptimizerBase {
 public:
  RMSpropBase(double rate, RMSpropOptions options)
      : OptimizerBase("rmsprop", rate), o_(options) {
    const bool fits = o_.rho >= 0 && o_.rho <= 1 && o_.momentum >= 0 &&
                      o_.momentum <= 1 && o_.epsilon >= 0;
    if (!fits) {
      throw errors::InvalidArgument(fmt::format(
          "RMSprop: rho is {}, momentum {}, epsilon {}; expected rho and "
          "momentum 0 to 1, epsilon at least 0",
          o_.rho, o_.momentum, o_.epsilon));
    }
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

struct RMSpropArgs {
  double learning_rate = 0.001;
  RMSpropOptions o;
  void fields(Fields& f) {
    f("learning_rate", learning_rate);
    f("rho", o.rho);
    f("momentum", o.momentum);
    f("epsilon", o.epsilon);
    f("centered", o.centered);
  }
  Optimizer make() const { return RMSprop(learning_rate, o); }
};

}  // namespace

RMSprop::RMSprop(double learning_rate, RMSpropOptions options)
    : Optimizer(std::make_shared<RMSpropBase>(learning_rate, options)) {
  base()->description =
      description("RMSprop", RMSpropArgs{learning_rate, options});
}

void add_rmsprop_class(Classes& c);
void add_rmsprop_class(Classes& c) {
  c.optimizers["RMSprop"] = &made_of<Optimizer, RMSpropArgs>;
}

}  // namespace berth::keras::optimizers
