// EarlyStopping.

#include <fmt/format.h>

#include "base/output.h"
#include "berth/keras/models.h"
#include "keras/callbacks/monitor.h"

namespace berth::keras::callbacks {

namespace {

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

}  // namespace

Callback EarlyStopping(EarlyStoppingOptions options) {
  return make_callback<EarlyStoppingCallback>(std::move(options));
}

}  // namespace berth::keras::callbacks
