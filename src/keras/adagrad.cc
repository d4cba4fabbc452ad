#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "keras/classes.h"
#include "keras/optimizer_base.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class AdagradBase final : public OptimizerBase {
 public:
  AdagradBase(double rate, AdagradOptions options)
      : OptimizerBase("adagrad", rate), o_(options) {
    const double start = o_.initial_accumulator_value;
    if (!(start >= 0 && std::isfinite(start) && o_.epsilon >= 0)) {
      throw errors::InvalidArgument(fmt::format(
          "Adagrad: initial_accumulator_value is {}, epsilon {}; expected "
          "numbers of at least 0",
          start, o_.epsilon));
    }
  }

 private:
  std::vector<const char*> slot_names() const override {
    return {"accumulator"};
  }
  double initial_slot_value() const override {
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

struct AdagradArgs {
  double learning_rate = 0.001;
  AdagradOptions o;
  void fields(Fields& f) {
    f("learning_rate", learning_rate);
    f("initial_accumulator_value", o.initial_accumulator_value);
    f("epsilon", o.epsilon);
  }
  Optimizer make() const { return Adagrad(learning_rate, o); }
};

}  // namespace

Adagrad::Adagrad(double learning_rate, AdagradOptions options)
    : Optimizer(std::make_shared<AdagradBase>(learning_rate, options)) {
  base()->description =
      description("Adagrad", AdagradArgs{learning_rate, options});
}

void add_adagrad_class(Classes& c);
void add_adagrad_class(Classes& c) {
  c.optimizers["Adagrad"] = &made_of<Optimizer, AdagradArgs>;
}

}  // namespace berth::keras::optimizers
