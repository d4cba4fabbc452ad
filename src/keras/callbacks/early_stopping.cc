// Callbacks that follow one figure: EarlyStopping, ReduceLROnPlateau; and
// LearningRateScheduler.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/output.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "berth/ops/array.h"
#include "keras/optimizers/optimizer_config.h"

namespace berth::keras::callbacks {

namespace {

// Says whether a figure became better.
class Monitor {
 public:
  Monitor(const char* who, std::string name, const std::string& mode,
          double min_delta)
      : who_(who), name_(std::move(name)), min_delta_(std::abs(min_delta)) {
    if (mode != "auto" && mode != "min" && mode != "max") {
      throw errors::InvalidArgument(fmt::format(
          "{}: mode is \"{}\"; expected auto, min or max", who, mode));
    }
    const auto has = [&](const char* part) {
      return name_.find(part) != std::string::npos;
    };
    rises_ = mode == "max" ||
             (mode == "auto" && (has("acc") || has("auc") || has("precision") ||
                                 has("recall") || has("f1_score")));
  }

  double worst() const {
    const double inf = std::numeric_limits<double>::infinity();
    return rises_ ? -inf : inf;
  }
  bool better(double now, double than) const {
    return rises_ ? now > than + min_delta_ : now < than - min_delta_;
  }
  const std::string& name() const { return name_; }

  // The value; nullopt after an epoch that did not validate. Throws
  // errors::InvalidArgument when there will be none.
  std::optional<double> value(const Model& model, const Logs& logs) const {
    const auto it = logs.find(name_);
    if (it != logs.end()) return it->second;
    const FitLoop* loop = model.fit_loop();
    const auto next = logs.lower_bound("val_");
    const bool validated =
        next != logs.end() && next->first.rfind("val_", 0) == 0;
    if (name_.rfind("val_", 0) == 0 && loop && loop->has_validation() &&
        !validated) {
      return std::nullopt;
    }
    std::string have;
    for (const auto& [name, value] : logs) have += " " + name;
    throw errors::InvalidArgument(fmt::format(
        "{}: there is no \"{}\"; expected one of{}", who_, name_, have));
  }

 private:
  const char* const who_;
  const std::string name_;
  const double min_delta_;
  bool rises_;
};

class EarlyStoppingCallback final : public CallbackBase {
 public:
  explicit EarlyStoppingCallback(EarlyStoppingOptions o)
      : CallbackBase("early_stopping"),
        o_(std::move(o)),
        monitor_("EarlyStopping", o_.monitor, o_.mode, o_.min_delta) {}

  void on_train_begin(Model&) override {
    // A fit that goes on keeps what set_state() gave.
    if (!restored_) reset();
    restored_ = false;
    stopped_ = -1;
  }
  void on_epoch_end(Model& model, int epoch, Logs& logs) override {
    if (epoch < o_.start_from_epoch) return;
    const auto now = monitor_.value(model, logs);
    if (!now) return;
    if (o_.restore_best_weights && weights_.empty()) keep(model, epoch);
    ++waited_;
    if (monitor_.better(*now, best_)) {
      best_ = *now;
      keep(model, epoch);
      // The wait begins anew only when the baseline is beaten as well.
      if (!o_.baseline || monitor_.better(*now, *o_.baseline)) waited_ = 0;
      return;
    }
    if (waited_ < o_.patience || epoch == 0) return;
    stopped_ = epoch;
    model.stop_training();
  }
  void on_train_end(Model& model) override {
    if (stopped_ >= 0 && o_.verbose > 0) {
      user_output().write(
          fmt::format("Epoch {}: early stopping\n", stopped_ + 1));
    }
    if (!o_.restore_best_weights || weights_.empty()) return;
    if (o_.verbose > 0) {
      user_output().write(
          fmt::format("Restoring model weights from the end of epoch {}.\n",
                      best_epoch_ + 1));
    }
    model.set_weights(weights_);
  }

  CallbackState get_state() const override {
    CallbackState s;
    s.numbers = {{"best", best_},
                 {"wait", static_cast<double>(waited_)},
                 {"best_epoch", static_cast<double>(best_epoch_)}};
    for (size_t i = 0; i < weights_.size(); ++i) {
      s.tensors[fmt::format("weight_{:06}", i)] = weights_[i];
    }
    return s;
  }
  void set_state(const CallbackState& s) override {
    reset();
    const auto number = [&](const char* name, double otherwise) {
      const auto it = s.numbers.find(name);
      return it == s.numbers.end() ? otherwise : it->second;
    };
    best_ = number("best", best_);
    waited_ = static_cast<int>(number("wait", 0));
    best_epoch_ = static_cast<int>(number("best_epoch", 0));
    for (const auto& [name, t] : s.tensors) weights_.push_back(t);
    restored_ = true;
  }

 private:
  void reset() {
    best_ = monitor_.worst();
    waited_ = best_epoch_ = 0;
    weights_.clear();
  }
  void keep(Model& model, int epoch) {
    best_epoch_ = epoch;
    if (o_.restore_best_weights) weights_ = model.get_weights();
  }

  const EarlyStoppingOptions o_;
  const Monitor monitor_;
  double best_ = 0;
  int waited_ = 0, best_epoch_ = 0, stopped_ = -1;
  bool restored_ = false;
  Tensors weights_;
};

double rate_of(const Model& model) { return current_rate(model.optimizer()); }

class ReduceLROnPlateauCallback final : public CallbackBase {
 public:
  explicit ReduceLROnPlateauCallback(ReduceLROnPlateauOptions o)
      : CallbackBase("reduce_lr_on_plateau"),
        o_(std::move(o)),
        monitor_("ReduceLROnPlateau", o_.monitor, o_.mode, o_.min_delta) {
    if (!(o_.factor >= 0 && o_.factor < 1)) {
      throw errors::InvalidArgument(
          fmt::format("ReduceLROnPlateau: factor is {}; expected 0 to 1, "
                      "without 1",
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

// Swaps weights and averages for tests and predictions, or from the end of one
// epoch to the start of the next.
class SwapEMAWeightsCallback final : public CallbackBase {
 public:
  explicit SwapEMAWeightsCallback(bool on_epoch)
      : CallbackBase("swap_ema_weights"), on_epoch_(on_epoch) {}

  void on_epoch_begin(Model& m, int) override {
    if (on_epoch_) put(m, false);
  }
  // After the last one fit itself ends with the averages in the weights.
  void on_epoch_end(Model& m, int epoch, Logs&) override {
    const FitLoop* loop = m.fit_loop();
    const bool last = loop && (loop->stopping() || epoch + 1 >= loop->epochs());
    if (on_epoch_ && !last) put(m, true);
  }
  void on_train_begin(Model&) override { averages_in_ = false; }
  void on_train_end(Model&) override { averages_in_ = false; }
  void on_test_begin(Model& m) override { put(m, true); }
  void on_test_end(Model& m, const Logs&) override { put(m, false); }
  void on_predict_begin(Model& m) override { put(m, true); }
  void on_predict_end(Model& m) override { put(m, false); }

 private:
  void put(Model& m, bool averages) {
    if (averages == averages_in_) return;
    m.optimizer().swap_averages(m.trainable_variables());
    averages_in_ = averages;
  }
  const bool on_epoch_;
  bool averages_in_ = false;
};

}  // namespace

Callback EarlyStopping(EarlyStoppingOptions options) {
  return make_callback<EarlyStoppingCallback>(std::move(options));
}
Callback ReduceLROnPlateau(ReduceLROnPlateauOptions options) {
  return make_callback<ReduceLROnPlateauCallback>(std::move(options));
}
Callback LearningRateScheduler(
    std::function<double(int epoch, double rate)> schedule, int verbose) {
  return make_callback<LearningRateSchedulerCallback>(std::move(schedule),
                                                      verbose);
}
Callback SwapEMAWeights(SwapEMAWeightsOptions options) {
  return make_callback<SwapEMAWeightsCallback>(options.swap_on_epoch);
}

}  // namespace berth::keras::callbacks
