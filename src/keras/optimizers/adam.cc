// Adam and its relatives: Adam, AdamW, Adamax, Nadam, Lamb.

#include <cmath>

#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/optimizers/optimizer_config.h"
#include "op/dispatcher.h"
#include "ops/training.h"

namespace berth::keras::optimizers {

namespace {

// Keeps beta_1 and beta_2 to the number of the step: a product each.
class WithBetas : public OptimizerBase {
 public:
  template <class Options>
  WithBetas(const char* name, LearningRate rate, const Options& o)
      : OptimizerBase(name, std::move(rate), common_of(o)),
        beta_1_(o.beta_1),
        beta_2_(o.beta_2),
        epsilon_(o.epsilon) {
    // A beta of 1 would divide by 0.
    check_option("beta_1", beta_1_, 0, std::nextafter(1.0, 0.0));
    check_option("beta_2", beta_2_, 0, std::nextafter(1.0, 0.0));
    check_option("epsilon", epsilon_);
  }

 protected:
  std::vector<const char*> slot_names() const override { return {"m", "v"}; }
  std::vector<Variable> make_counters(DType dtype) override {
    power1_ = counter("beta_1_power", 1, dtype);
    power2_ = counter("beta_2_power", 1, dtype);
    return {power1_, power2_};
  }
  void advance(Site site) override {
    now1_ = next_power(power1_, beta_1_, site);
    now2_ = next_power(power2_, beta_2_, site);
  }
  void begin(DType dtype, Site site) override {
    rate_ = rate(dtype, site);
    left1_ = 1.0 - as(now1_, dtype, site);
    left2_ = 1.0 - as(now2_, dtype, site);
  }

  // v += (target - v) * (1 - beta); returns what v becomes.
  static Tensor towards(const Variable& v, const Tensor& target, double beta) {
    const Site site = t_state.site;
    const Tensor old = v.value(site);
    const Tensor next = old + (target - old) * (1 - beta);
    v.assign(next, site);
    return next;
  }

  const double beta_1_, beta_2_, epsilon_;
  Variable power1_, power2_;
  Tensor now1_, now2_;           // powers of the step being made
  Tensor rate_, left1_, left2_;  // 1 - powers
};

// AdamW where there is a decay.
class AdamBase final : public WithBetas {
 public:
  AdamBase(LearningRate rate, const AdamOptions& o)
      : WithBetas("adam", std::move(rate), o), amsgrad_(o.amsgrad) {}
  AdamBase(LearningRate rate, const AdamWOptions& o)
      : WithBetas("adamw", std::move(rate), o), amsgrad_(o.amsgrad) {}

 private:
  std::vector<const char*> slot_names() const override {
    if (amsgrad_) return {"m", "v", "v_hat"};
    return {"m", "v"};
  }
  bool decays_itself() const override { return !amsgrad_; }

  void begin(DType dtype, Site site) override {
    if (amsgrad_) return WithBetas::begin(dtype, site);
    s_.beta1_power = as(now1_, dtype, site);
    s_.beta2_power = as(now2_, dtype, site);
    s_.lr = rate(dtype, site);
    s_.beta1 = scalar(beta_1_, dtype);
    s_.beta2 = scalar(beta_2_, dtype);
    s_.epsilon = scalar(epsilon_, dtype);
    weight_decay_ = scalar(options().weight_decay, dtype);
  }

  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    if (amsgrad_) return update_by_largest(v, slots, grad);
    const Tensor &m = slots[0].handle(), &second = slots[1].handle();
    if (options().weight_decay > 0 && decays(v)) {
      training::apply_adam_with_weight_decay(v.handle(), m, second, s_,
                                             weight_decay_, grad, false);
    } else {
      training::apply_adam(v.handle(), m, second, s_, grad, false);
    }
  }

  void update_by_largest(const Variable& v, const Slots& slots,
                         const Tensor& grad) {
    const Site site = t_state.site;
    const Tensor m = towards(slots[0], grad, beta_1_);
    const Tensor second = towards(slots[1], grad * grad, beta_2_);
    const Tensor most = math::maximum(slots[2].value(site), second, site);
    slots[2].assign(most, site);
    const Tensor alpha = rate_ * math::sqrt(left2_, site) / left1_;
    v.assign_sub(m * alpha / (math::sqrt(most, site) + epsilon_), site);
  }

  const bool amsgrad_;
  training::AdamScalars s_;
  Tensor weight_decay_;
};

class AdamaxBase final : public WithBetas {
 public:
  AdamaxBase(LearningRate rate, const AdamaxOptions& o)
      : WithBetas("adamax", std::move(rate), o) {}

 private:
  std::vector<const char*> slot_names() const override { return {"m", "u"}; }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const Tensor m = towards(slots[0], grad, beta_1_);
    const Tensor u = math::maximum(slots[1].value(site) * beta_2_,
                                   math::abs(grad, site), site);
    slots[1].assign(u, site);
    v.assign_sub(rate_ * m / (left1_ * (u + epsilon_)), site);
  }
};

// Its momentum follows Dozat's schedule: beta_1 * (1 - 0.96^t / 2).
class NadamBase final : public WithBetas {
 public:
  NadamBase(LearningRate rate, const NadamOptions& o)
      : WithBetas("nadam", std::move(rate), o) {}

 private:
  static constexpr double kDecay = 0.96;

  std::vector<Variable> make_counters(DType dtype) override {
    std::vector<Variable> list = WithBetas::make_counters(dtype);
    decay_power_ = counter("decay_power", 1, dtype);
    product_ = counter("u_product", 1, dtype);
    list.push_back(decay_power_);
    list.push_back(product_);
    return list;
  }
  void advance(Site site) override {
    WithBetas::advance(site);
    const Tensor decay = next_power(decay_power_, kDecay, site);
    u_ = beta_1_ * (1.0 - 0.5 * decay);
    next_u_ = beta_1_ * (1.0 - (0.5 * kDecay) * decay);
    products_ = product_.value(site) * u_;
    product_.assign(products_, site);
  }
  void begin(DType dtype, Site site) override {
    WithBetas::begin(dtype, site);
    const Tensor u = as(u_, dtype, site), next = as(next_u_, dtype, site);
    const Tensor product = as(products_, dtype, site);
    of_m_ = next / (1.0 - product * next);
    of_grad_ = (1.0 - u) / (1.0 - product);
  }
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const Tensor m = towards(slots[0], grad, beta_1_);
    const Tensor second = towards(slots[1], grad * grad, beta_2_) / left2_;
    const Tensor ahead = m * of_m_ + grad * of_grad_;
    v.assign_sub(ahead * rate_ / (math::sqrt(second, site) + epsilon_), site);
  }

  Variable decay_power_, product_;
  Tensor u_, next_u_, products_;  // of the step being made
  Tensor of_m_, of_grad_;
};

class LambBase final : public WithBetas {
 public:
  LambBase(LearningRate rate, const LambOptions& o)
      : WithBetas("lamb", std::move(rate), o) {}

 private:
  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const Tensor m = towards(slots[0], grad, beta_1_) / left1_;
    const Tensor second = towards(slots[1], grad * grad, beta_2_) / left2_;
    const Tensor step = m / (math::sqrt(second, site) + epsilon_);
    const Tensor now = v.value(site);
    const Tensor size = norm(now), step_size = norm(step);
    const Tensor one = scalar(1, v.dtype()), zero = scalar(0, v.dtype());
    const Tensor ratio =
        where(size > zero, where(step_size > zero, size / step_size, one), one);
    v.assign_sub(step * (ratio * rate_), site);
  }
  static Tensor norm(const Tensor& x) {
    return math::sqrt(math::reduce_sum(x * x, {}, t_state.site), t_state.site);
  }
};

}  // namespace

Adam::Adam(LearningRate learning_rate, AdamOptions options)
    : Optimizer(
          make_optimizer<Adam, AdamBase>("Adam", learning_rate, options)) {}
AdamW::AdamW(LearningRate learning_rate, AdamWOptions options)
    : Optimizer(
          make_optimizer<AdamW, AdamBase>("AdamW", learning_rate, options)) {}
Adamax::Adamax(LearningRate learning_rate, AdamaxOptions options)
    : Optimizer(make_optimizer<Adamax, AdamaxBase>("Adamax", learning_rate,
                                                   options)) {}
Nadam::Nadam(LearningRate learning_rate, NadamOptions options)
    : Optimizer(
          make_optimizer<Nadam, NadamBase>("Nadam", learning_rate, options)) {}
Lamb::Lamb(LearningRate learning_rate, LambOptions options)
    : Optimizer(
          make_optimizer<Lamb, LambBase>("Lamb", learning_rate, options)) {}

void add_adam_classes(Classes& c) {
  c.optimizers["Adam"] = &made_of<Optimizer, OptimizerArgs<Adam, AdamOptions>>;
  c.optimizers["AdamW"] =
      &made_of<Optimizer, OptimizerArgs<AdamW, AdamWOptions>>;
  c.optimizers["Adamax"] =
      &made_of<Optimizer, OptimizerArgs<Adamax, AdamaxOptions>>;
  c.optimizers["Nadam"] =
      &made_of<Optimizer, OptimizerArgs<Nadam, NadamOptions>>;
  c.optimizers["Lamb"] = &made_of<Optimizer, OptimizerArgs<Lamb, LambOptions>>;
}

}  // namespace berth::keras::optimizers
