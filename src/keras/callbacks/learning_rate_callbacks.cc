// ReduceLROnPlateau and LearningRateScheduler.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/output.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "keras/callbacks/monitor.h"
#include "keras/optimizers/optimizer_config.h"

namespace berth::keras::callbacks {

namespace {

double rate_of(const Model& model) { return current_rate(model.optimizer()); }

class ReduceLROnPlateauCallback final : public CallbackBase {
 public:
  explicit ReduceLROnPlateauCallback(ReduceLROnPlateauOptions o)
      : CallbackBase("reduce_lr_on_plateau"),
        o_(std::move(o)),
        monitor_("ReduceLROnPlateau", o_.monitor, o_.mode, o_.min_delta) {
    if (!(o_.factor >= 0 && o_.factor < 1)) {
      throw errors::InvalidArgument(fmt::format(
          "ReduceLROnPlateau: factor is {}; expected 0 to 1, without 1",
          o_.factor));
    }
  }

  void on_train_begin(Model&) override {
    if (!restored_) {
      best_ = monitor_.worst();
      waited_ = cools_ = 0;
    }
    restored_ = false;
  }
  void on_epoch_end(Model& model, int epoch, Logs& logs) override {
    const double rate = rate_of(model);
    logs["learning_rate"] = rate;
    const auto now = monitor_.value(model, logs);
    if (!now) return;
    if (cools_ > 0) {
      --cools_;
      waited_ = 0;
    }
    if (monitor_.better(*now, best_)) {
      best_ = *now;
      waited_ = 0;
      return;
    }
    if (cools_ > 0 || ++waited_ < o_.patience || rate <= o_.min_lr) return;
    const double lower = std::max(rate * o_.factor, o_.min_lr);
    model.optimizer().set_learning_rate(lower);
    if (o_.verbose > 0) {
      user_output().write(fmt::format(
          "Epoch {}: ReduceLROnPlateau reducing learning rate to {:g}.\n",
          epoch + 1, lower));
    }
    cools_ = o_.cooldown;
    waited_ = 0;
  }

  CallbackState get_state() const override {
    return {.numbers = {{"best", best_},
                        {"wait", static_cast<double>(waited_)},
                        {"cooldown_counter", static_cast<double>(cools_)}}};
  }
  void set_state(const CallbackState& s) override {
    best_ = monitor_.worst();
    for (const auto& [name, value] : s.numbers) {
      if (name == "best") best_ = value;
      if (name == "wait") waited_ = static_cast<int>(value);
      if (name == "cooldown_counter") cools_ = static_cast<int>(value);
    }
    restored_ = true;
  }

 private:
  const ReduceLROnPlateauOptions o_;
  const Monitor monitor_;
  double best_ = 0;
  int waited_ = 0, cools_ = 0;
  bool restored_ = false;
};

class LearningRateSchedulerCallback final : public CallbackBase {
 public:
  LearningRateSchedulerCallback(
      std::function<double(int epoch, double rate)> schedule, int verbose)
      : CallbackBase("learning_rate_scheduler"),
        schedule_(std::move(schedule)),
        verbose_(verbose) {}

  void on_epoch_begin(Model& model, int epoch) override {
    const double rate = schedule_(epoch, rate_of(model));
    if (!(std::isfinite(rate) && rate >= 0)) {
      throw errors::InvalidArgument(fmt::format(
          "LearningRateScheduler: the rate of epoch {} is {}; expected a "
          "number of at least 0",
          epoch, rate));
    }
    model.optimizer().set_learning_rate(rate);
    if (verbose_ > 0) {
      user_output().write(fmt::format(
          "Epoch {}: LearningRateScheduler setting learning rate to {:g}.\n",
          epoch + 1, rate));
    }
  }
  void on_epoch_end(Model& model, int, Logs& logs) override {
    logs["learning_rate"] = rate_of(model);
  }

 private:
  const std::function<double(int, double)> schedule_;
  const int verbose_;
};

}  // namespace

Callback ReduceLROnPlateau(ReduceLROnPlateauOptions options) {
  return make_callback<ReduceLROnPlateauCallback>(std::move(options));
}
Callback LearningRateScheduler(
    std::function<double(int epoch, double rate)> schedule, int verbose) {
  return make_callback<LearningRateSchedulerCallback>(std::move(schedule),
                                                      verbose);
}

}  // namespace berth::keras::callbacks
