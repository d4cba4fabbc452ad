#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "berth/ops/math.h"
#include "keras/classes.h"
#include "keras/optimizer_base.h"
#include "op/dispatcher.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

// AdamW where there is a decay.
class AdamBase final : public OptimizerBase {
 public:
  AdamBase(const char* name, double rate, AdamOptions options,
           std::optional<double> decay)
      : OptimizerBase(name, rate), o_(options), decay_(decay) {
    const bool fits = o_.beta_1 >= 0 && o_.beta_1 < 1 && o_.beta_2 >= 0 &&
                      o_.beta_2 < 1 && o_.epsilon >= 0;
    if (!fits) {
      throw errors::InvalidArgument(fmt::format(
          "{}: beta_1 is {}, beta_2 {}, epsilon {}; expected betas in "
          "[0, 1), epsilon at least 0",
          name, o_.beta_1, o_.beta_2, o_.epsilon));
    }
    if (decay_ && !(*decay_ >= 0 && std::isfinite(*decay_))) {
      throw errors::InvalidArgument(
          fmt::format("{}: weight_decay is {}; expected a number of at least 0",
                      name, *decay_));
    }
  }

 private:
  std::vector<const char*> slot_names() const override { return {"m", "v"}; }

  // Powers are kept, not computed from the step counter: a product each.
  std::vector<Variable> make_counters(DType dtype) override {
    const Site site = t_state.site;
    const auto power = [&](const char* name) {
      return Variable(scalar(1, dtype),
                      {.name = fmt::format("{}/{}", this->name(), name),
                       .trainable = false},
                      site);
    };
    power1_ = power("beta_1_power");
    power2_ = power("beta_2_power");
    return {power1_, power2_};
  }

  // Returns beta to the number of this step.
  static Tensor next_power(const Variable& power, double beta, Site site) {
    const Tensor now =
        math::multiply(power.value(site), scalar(beta, power.dtype()), site);
    power.assign(now, site);
    return now;
  }
  void advance(Site site) override {
    now1_ = next_power(power1_, o_.beta_1, site);
    now2_ = next_power(power2_, o_.beta_2, site);
  }

  void begin(DType dtype, Site site) override {
    s_.beta1_power = as(now1_, dtype, site);
    s_.beta2_power = as(now2_, dtype, site);
    s_.lr = rate(dtype, site);
    s_.beta1 = scalar(o_.beta_1, dtype);
    s_.beta2 = scalar(o_.beta_2, dtype);
    s_.epsilon = scalar(o_.epsilon, dtype);
    if (decay_) weight_decay_ = scalar(*decay_, dtype);
  }

  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Tensor &m = slots[0].handle(), &second = slots[1].handle();
    if (decay_) {
      training::apply_adam_with_weight_decay(v.handle(), m, second, s_,
                                             weight_decay_, grad, false);
    } else {
      training::apply_adam(v.handle(), m, second, s_, grad, false);
    }
  }

  const AdamOptions o_;
  const std::optional<double> decay_;
  Variable power1_, power2_;
  Tensor now1_, now2_;  // powers of the step being made
  training::AdamScalars s_;
  Tensor weight_decay_;
};

struct AdamArgs {
  double learning_rate = 0.001;
  AdamOptions o;
  void fields(Fields& f) {
    f("learning_rate", learning_rate);
    f("beta_1", o.beta_1);
    f("beta_2", o.beta_2);
    f("epsilon", o.epsilon);
  }
  Optimizer make() const { return Adam(learning_rate, o); }
};

struct AdamWArgs {
  double learning_rate = 0.001;
  AdamWOptions o;
  void fields(Fields& f) {
    f("learning_rate", learning_rate);
    f("weight_decay", o.weight_decay);
    f("beta_1", o.beta_1);
    f("beta_2", o.beta_2);
    f("epsilon", o.epsilon);
  }
  Optimizer make() const { return AdamW(learning_rate, o); }
};

}  // namespace

Adam::Adam(double learning_rate, AdamOptions options)
    : Optimizer(std::make_shared<AdamBase>("adam", learning_rate, options,
                                           std::nullopt)) {
  base()->description = description("Adam", AdamArgs{learning_rate, options});
}

AdamW::AdamW(double learning_rate, AdamWOptions o)
    : Optimizer(std::make_shared<AdamBase>(
          "adamw", learning_rate,
          AdamOptions{
              .beta_1 = o.beta_1, .beta_2 = o.beta_2, .epsilon = o.epsilon},
          o.weight_decay)) {
  base()->description = description("AdamW", AdamWArgs{learning_rate, o});
}

void add_adam_class(Classes& c);
void add_adam_class(Classes& c) {
  c.optimizers["Adam"] = &made_of<Optimizer, AdamArgs>;
}

void add_adamw_class(Classes& c);
void add_adamw_class(Classes& c) {
  c.optimizers["AdamW"] = &made_of<Optimizer, AdamWArgs>;
}

}  // namespace berth::keras::optimizers
