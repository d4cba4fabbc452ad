#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "berth/ops/math.h"
#include "keras/optimizer_base.h"
#include "op/dispatcher.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

class AdamBase final : public OptimizerBase {
 public:
  AdamBase(double rate, AdamOptions options)
      : OptimizerBase("adam", rate), o_(options) {
    const bool fits = o_.beta_1 >= 0 && o_.beta_1 < 1 && o_.beta_2 >= 0 &&
                      o_.beta_2 < 1 && o_.epsilon >= 0;
    if (!fits) {
      throw errors::InvalidArgument(fmt::format(
          "Adam: beta_1 is {}, beta_2 {}, epsilon {}; expected betas in "
          "[0, 1), epsilon at least 0",
          o_.beta_1, o_.beta_2, o_.epsilon));
    }
  }

 private:
  std::vector<const char*> slot_names() const override { return {"m", "v"}; }

  // Powers are kept, not computed from the step counter: a product each.
  std::vector<Variable> make_counters(DType dtype) override {
    const Site site = t_state.site;
    const auto power = [&](const char* name) {
      return Variable(scalar(1, dtype),
                      {.name = std::string("adam/") + name, .trainable = false},
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
  }

  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    training::apply_adam(v.handle(), slots[0].handle(), slots[1].handle(), s_,
                         grad, false);
  }

  const AdamOptions o_;
  Variable power1_, power2_;
  Tensor now1_, now2_;  // powers of the step being made
  training::AdamScalars s_;
};

}  // namespace

Adam::Adam(double learning_rate, AdamOptions options)
    : Optimizer(std::make_shared<AdamBase>(learning_rate, options)) {}

}  // namespace berth::keras::optimizers
