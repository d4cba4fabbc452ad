// Schedules of learning rates.

#include "berth/keras/schedules.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth::keras {

Tensor LearningRateSchedule::operator()(const Tensor& step) const {
  return fn_(step);
}
double LearningRateSchedule::operator()(int64_t step) const {
  return fn_(constant(static_cast<float>(step))).item<double>();
}

namespace optimizers::schedules {

namespace {

void check_rate(const char* who, const char* what, double value) {
  if (std::isfinite(value)) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} is {}; expected a finite number", who, what, value));
}

void check_steps(const char* who, const char* what, int64_t steps) {
  if (steps >= 1) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} is {}; expected at least 1", who, what, steps));
}

// step / steps.
Tensor progress_of(const Tensor& step, int64_t steps, bool staircase) {
  const Tensor p = step / static_cast<double>(steps);
  return staircase ? math::floor(p) : p;
}

Tensor power(double base, const Tensor& exponent) {
  return math::pow(constant(static_cast<float>(base)), exponent);
}

// 1 to 0 while x goes from 0 to 1.
Tensor half_cosine(const Tensor& x) {
  return 0.5 * (1.0 + math::cos(x * std::numbers::pi));
}

Tensor at_most(const Tensor& step, double limit) {
  return math::minimum(step, constant(static_cast<float>(limit)));
}

}  // namespace

LearningRateSchedule ExponentialDecay(double initial_learning_rate,
                                      int64_t decay_steps, double decay_rate,
                                      StaircaseOptions o) {
  const double first = initial_learning_rate;
  check_rate("ExponentialDecay", "initial_learning_rate", first);
  check_rate("ExponentialDecay", "decay_rate", decay_rate);
  check_steps("ExponentialDecay", "decay_steps", decay_steps);
  return {"ExponentialDecay",
          {{"initial_learning_rate", {first}},
           {"decay_steps", {static_cast<double>(decay_steps)}},
           {"decay_rate", {decay_rate}},
           {"staircase", {o.staircase ? 1.0 : 0.0}}},
          [=](const Tensor& step) {
            return power(decay_rate,
                         progress_of(step, decay_steps, o.staircase)) *
                   first;
          }};
}

LearningRateSchedule InverseTimeDecay(double initial_learning_rate,
                                      int64_t decay_steps, double decay_rate,
                                      StaircaseOptions o) {
  const double first = initial_learning_rate;
  check_rate("InverseTimeDecay", "initial_learning_rate", first);
  check_rate("InverseTimeDecay", "decay_rate", decay_rate);
  check_steps("InverseTimeDecay", "decay_steps", decay_steps);
  return {"InverseTimeDecay",
          {{"initial_learning_rate", {first}},
           {"decay_steps", {static_cast<double>(decay_steps)}},
           {"decay_rate", {decay_rate}},
           {"staircase", {o.staircase ? 1.0 : 0.0}}},
          [=](const Tensor& step) {
            return first / (1.0 + decay_rate * progress_of(step, decay_steps,
                                                           o.staircase));
          }};
}

LearningRateSchedule PiecewiseConstantDecay(std::vector<int64_t> boundaries,
                                            std::vector<double> values) {
  bool fits = !boundaries.empty() && values.size() == boundaries.size() + 1;
  for (size_t i = 1; i < boundaries.size(); ++i) {
    fits = fits && boundaries[i - 1] < boundaries[i];
  }
  if (!fits) {
    throw errors::InvalidArgument(fmt::format(
        "PiecewiseConstantDecay: {} boundaries and {} values; expected "
        "boundaries that rise, and one value more",
        boundaries.size(), values.size()));
  }
  for (double v : values) check_rate("PiecewiseConstantDecay", "a value", v);
  return {"PiecewiseConstantDecay",
          {{"boundaries",
            std::vector<double>(boundaries.begin(), boundaries.end())},
           {"values", values}},
          [=](const Tensor& step) {
            Tensor rate = constant(static_cast<float>(values.back()));
            for (size_t i = boundaries.size(); i-- > 0;) {
              rate = where(step <= constant(static_cast<float>(boundaries[i])),
                           constant(static_cast<float>(values[i])), rate);
            }
            return rate;
          }};
}

LearningRateSchedule PolynomialDecay(double initial_learning_rate,
                                     int64_t decay_steps,
                                     PolynomialDecayOptions o) {
  const double first = initial_learning_rate;
  check_rate("PolynomialDecay", "initial_learning_rate", first);
  check_rate("PolynomialDecay", "end_learning_rate", o.end_learning_rate);
  check_rate("PolynomialDecay", "power", o.power);
  check_steps("PolynomialDecay", "decay_steps", decay_steps);
  return {"PolynomialDecay",
          {{"initial_learning_rate", {first}},
           {"decay_steps", {static_cast<double>(decay_steps)}},
           {"end_learning_rate", {o.end_learning_rate}},
           {"power", {o.power}},
           {"cycle", {o.cycle ? 1.0 : 0.0}}},
          [=](const Tensor& step) {
            const auto steps = static_cast<double>(decay_steps);
            const Tensor end = o.cycle ? math::maximum(math::ceil(step / steps),
                                                       constant(1.f)) *
                                             steps
                                       : constant(static_cast<float>(steps));
            const Tensor left = 1.0 - math::minimum(step, end) / end;
            return (first - o.end_learning_rate) *
                       math::pow(left, constant(static_cast<float>(o.power))) +
                   o.end_learning_rate;
          }};
}

LearningRateSchedule CosineDecay(double initial_learning_rate,
                                 int64_t decay_steps, CosineDecayOptions o) {
  const double first = initial_learning_rate;
  check_rate("CosineDecay", "initial_learning_rate", first);
  check_rate("CosineDecay", "alpha", o.alpha);
  check_steps("CosineDecay", "decay_steps", decay_steps);
  LearningRateSchedule::Parameters parameters = {
      {"initial_learning_rate", {first}},
      {"decay_steps", {static_cast<double>(decay_steps)}},
      {"alpha", {o.alpha}}};
  if (o.warmup_target) {
    check_rate("CosineDecay", "warmup_target", *o.warmup_target);
    check_steps("CosineDecay", "warmup_steps", o.warmup_steps);
    parameters.push_back({"warmup_target", {*o.warmup_target}});
    parameters.push_back(
        {"warmup_steps", {static_cast<double>(o.warmup_steps)}});
  }
  const auto decay = [=](const Tensor& step, double from) {
    const Tensor x = at_most(step, static_cast<double>(decay_steps)) /
                     static_cast<double>(decay_steps);
    return ((1 - o.alpha) * half_cosine(x) + o.alpha) * from;
  };
  return {"CosineDecay", std::move(parameters), [=](const Tensor& step) {
            if (!o.warmup_target) return decay(step, first);
            const auto warm = static_cast<double>(o.warmup_steps);
            return where(step < constant(static_cast<float>(warm)),
                         step / warm * (*o.warmup_target - first) + first,
                         decay(step - warm, *o.warmup_target));
          }};
}

LearningRateSchedule CosineDecayRestarts(double initial_learning_rate,
                                         int64_t first_decay_steps,
                                         CosineDecayRestartsOptions o) {
  const double first = initial_learning_rate;
  const char* who = "CosineDecayRestarts";
  check_rate(who, "initial_learning_rate", first);
  check_rate(who, "alpha", o.alpha);
  check_rate(who, "m_mul", o.m_mul);
  check_steps(who, "first_decay_steps", first_decay_steps);
  if (!(o.t_mul >= 1 && std::isfinite(o.t_mul))) {
    throw errors::InvalidArgument(
        fmt::format("{}: t_mul is {}; expected at least 1", who, o.t_mul));
  }
  return {who,
          {{"initial_learning_rate", {first}},
           {"first_decay_steps", {static_cast<double>(first_decay_steps)}},
           {"t_mul", {o.t_mul}},
           {"m_mul", {o.m_mul}},
           {"alpha", {o.alpha}}},
          [=](const Tensor& step) {
            Tensor done = step / static_cast<double>(first_decay_steps);
            Tensor restarts;
            if (o.t_mul == 1) {
              restarts = math::floor(done);
              done = done - restarts;
            } else {
              restarts = math::floor(math::log(1.0 - done * (1 - o.t_mul)) /
                                     std::log(o.t_mul));
              const Tensor factor = power(o.t_mul, restarts);
              done = (done - (1.0 - factor) / (1 - o.t_mul)) / factor;
            }
            const Tensor height = power(o.m_mul, restarts) * half_cosine(done);
            return ((1 - o.alpha) * height + o.alpha) * first;
          }};
}

}  // namespace optimizers::schedules
}  // namespace berth::keras
