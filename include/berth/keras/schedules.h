// schedules: learning rates as functions of the step number
// (tf.keras.optimizers.schedules).
//
// A LearningRateSchedule is a value handle; an optimizer made with one computes
// its rate in each step, in the plan of the step. Throw errors::InvalidArgument
// for numbers that do not fit. Thread-safe if your own function is.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_SCHEDULES_H_
#define BERTH_KERAS_SCHEDULES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras {

class LearningRateSchedule {
 public:
  // The rate, a scalar, at step `step`: float32 [], from 0.
  using Fn = std::function<Tensor(const Tensor& step)>;
  using Parameters = std::vector<std::pair<std::string, std::vector<double>>>;

  LearningRateSchedule() = default;                    // none
  LearningRateSchedule(Fn fn) : fn_(std::move(fn)) {}  // NOLINT: your own
  LearningRateSchedule(std::string class_name, Parameters parameters, Fn fn)
      : class_name_(std::move(class_name)),
        parameters_(std::move(parameters)),
        fn_(std::move(fn)) {}

  explicit operator bool() const { return fn_ != nullptr; }
  Tensor operator()(const Tensor& step) const;
  double operator()(int64_t step) const;

  // Keras' class, "" for your own, and its arguments.
  const std::string& class_name() const { return class_name_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  std::string class_name_;
  Parameters parameters_;
  Fn fn_;
};

// A rate: a number, or a schedule.
class LearningRate {
 public:
  LearningRate(double value) : value_(value) {}  // NOLINT
  LearningRate(LearningRateSchedule schedule)    // NOLINT
      : schedule_(std::move(schedule)) {}
  double value() const { return value_; }
  const LearningRateSchedule& schedule() const { return schedule_; }

 private:
  double value_ = 0;
  LearningRateSchedule schedule_;
};

namespace optimizers::schedules {

using keras::LearningRateSchedule;

struct StaircaseOptions {
  bool staircase = false;  // step / decay_steps is rounded down
};
// initial * decay_rate ^ (step / decay_steps).
LearningRateSchedule ExponentialDecay(double initial_learning_rate,
                                      int64_t decay_steps, double decay_rate,
                                      StaircaseOptions options = {});
// initial / (1 + decay_rate * step / decay_steps).
LearningRateSchedule InverseTimeDecay(double initial_learning_rate,
                                      int64_t decay_steps, double decay_rate,
                                      StaircaseOptions options = {});
// values[i], where i is the number of boundaries below the step; there is one
// value more than boundaries, which ascend.
LearningRateSchedule PiecewiseConstantDecay(std::vector<int64_t> boundaries,
                                            std::vector<double> values);

struct PolynomialDecayOptions {
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;  // decays over the next multiple of decay_steps
};
// (initial - end) * (1 - step / decay_steps) ^ power + end, then end.
LearningRateSchedule PolynomialDecay(double initial_learning_rate,
                                     int64_t decay_steps,
                                     PolynomialDecayOptions options = {});

struct CosineDecayOptions {
  double alpha = 0;  // the final rate, as a share of the first
  // Rises from the initial rate to it over warmup_steps, then decays from it.
  std::optional<double> warmup_target = std::nullopt;
  int64_t warmup_steps = 0;
};
// Half a cosine wave (Loshchilov and Hutter 2016).
LearningRateSchedule CosineDecay(double initial_learning_rate,
                                 int64_t decay_steps,
                                 CosineDecayOptions options = {});

struct CosineDecayRestartsOptions {
  double t_mul = 2;  // length of each period relative to the last
  double m_mul = 1;  // first rate of each period relative to the last
  double alpha = 0;
};
// Half cosine waves, one after another.
LearningRateSchedule CosineDecayRestarts(
    double initial_learning_rate, int64_t first_decay_steps,
    CosineDecayRestartsOptions options = {});

}  // namespace optimizers::schedules
}  // namespace berth::keras

#endif  // BERTH_KERAS_SCHEDULES_H_
