// Configs of optimizers: one list of fields for all of them.

#ifndef BERTH_KERAS_OPTIMIZERS_OPTIMIZER_CONFIG_H_
#define BERTH_KERAS_OPTIMIZERS_OPTIMIZER_CONFIG_H_

#include <type_traits>

#include "berth/keras/optimizers.h"
#include "keras/config/classes.h"
#include "keras/optimizers/optimizer_base.h"

namespace berth::keras {

// A number, or a schedule of schedules.h. Writing throws
// errors::FailedPrecondition for a schedule of the user's.
void rate_field(Fields& f, LearningRate& rate);

// The rate of the next step, as Keras says it: of its schedule, if it has one.
double current_rate(const Optimizer& optimizer);

// A number whose 0 Keras writes as null.
template <class T>
void optional_field(Fields& f, const char* name, T& v) {
  if (!f.reading() && v == 0) return f.put(name, nullptr);
  f(name, v);
}

// What an optimizer T was made of; fields as far as its options have them.
template <class T, class Options>
struct OptimizerArgs {
  LearningRate rate = std::is_same_v<T, SGD> ? 0.01 : 0.001;
  Options o;

  void fields(Fields& f) {
    if (!o.name.empty() || f.reading()) f("name", o.name);
    rate_field(f, rate);
    f("weight_decay", o.weight_decay);
    optional_field(f, "clipnorm", o.clipnorm);
    optional_field(f, "clipvalue", o.clipvalue);
    optional_field(f, "global_clipnorm", o.global_clipnorm);
    f("use_ema", o.use_ema);
    f("ema_momentum", o.ema_momentum);
    optional_field(f, "ema_overwrite_frequency", o.ema_overwrite_frequency);
    optional_field(f, "loss_scale_factor", o.loss_scale_factor);
    optional_field(f, "gradient_accumulation_steps",
                   o.gradient_accumulation_steps);
    own_fields(f);
  }
  Optimizer make() const { return T(rate, o); }

 private:
  void own_fields(Fields& f) {
    if constexpr (requires { o.beta_1; }) {
      f("beta_1", o.beta_1);
      f("beta_2", o.beta_2);
    }
    if constexpr (requires { o.epsilon; }) f("epsilon", o.epsilon);
    if constexpr (requires { o.amsgrad; }) f("amsgrad", o.amsgrad);
    if constexpr (requires { o.momentum; }) f("momentum", o.momentum);
    if constexpr (requires { o.nesterov; }) f("nesterov", o.nesterov);
    if constexpr (requires { o.rho; }) f("rho", o.rho);
    if constexpr (requires { o.centered; }) f("centered", o.centered);
    if constexpr (requires { o.initial_accumulator_value; }) {
      f("initial_accumulator_value", o.initial_accumulator_value);
    }
    if constexpr (requires { o.relative_step; }) {
      f("beta_2_decay", o.beta_2_decay);
      f("epsilon_1", o.epsilon_1);
      f("epsilon_2", o.epsilon_2);
      f("clip_threshold", o.clip_threshold);
      f("relative_step", o.relative_step);
    }
    if constexpr (requires { o.learning_rate_power; }) {
      f("learning_rate_power", o.learning_rate_power);
      f("l1_regularization_strength", o.l1_regularization_strength);
      f("l2_regularization_strength", o.l2_regularization_strength);
      f("l2_shrinkage_regularization_strength",
        o.l2_shrinkage_regularization_strength);
      f("beta", o.beta);
    }
  }
};

// Makes the base of T with its description.
template <class T, class Base, class Options>
std::shared_ptr<OptimizerBase> make_optimizer(const char* class_name,
                                              const LearningRate& rate,
                                              const Options& o) {
  auto base = std::make_shared<Base>(rate, o);
  base->description =
      description(class_name, OptimizerArgs<T, Options>{rate, o});
  return base;
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZERS_OPTIMIZER_CONFIG_H_
