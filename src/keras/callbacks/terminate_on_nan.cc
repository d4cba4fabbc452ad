// TerminateOnNaN: stops, and says which op made the first NaN.

#include <fmt/format.h>

#include <cmath>

#include "base/output.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "keras/callbacks/nan_finder.h"

namespace berth::keras::callbacks {

namespace {

class TerminateOnNaNCallback final : public CallbackBase {
 public:
  explicit TerminateOnNaNCallback(TerminateOnNaNOptions o)
      : CallbackBase("terminate_on_nan"), o_(o) {}

  void on_train_begin(Model&) override { before_.clear(); }
  void on_train_batch_begin(Model& model, int64_t) override {
    // Snapshots share the weights until the step writes them.
    if (o_.find_op) before_ = model.get_weights();
  }
  void on_train_batch_end(Model& model, int64_t batch) override {
    const Logs logs = model.metrics_result();
    const auto loss = logs.find("loss");
    if (loss == logs.end() || std::isfinite(loss->second)) return;
    std::string message =
        fmt::format("TerminateOnNaN: the loss is {} after batch {} of epoch {}",
                    loss->second, batch + 1, model.fit_loop()->epoch() + 1);
    if (o_.find_op) message += origin(model);
    if (o_.raise_error) throw errors::InvalidArgument(message);
    user_output().write(message + "\n");
    model.stop_training();
  }

 private:
  // Runs the step again on the weights that it found.
  std::string origin(Model& model) {
    if (before_.size() == model.weights().size()) model.set_weights(before_);
    const std::vector<Variable> weights = model.weights();
    for (const Variable& v : weights) {
      if (!all_finite(v.value())) {
        return fmt::format(
            "; variable \"{}\" was not finite before this step: the gradients "
            "of an earlier one were too large; lower the rate, or set clipnorm",
            v.name());
      }
    }
    NaNFinder finder;
    try {
      model.fit_loop()->repeat_eagerly();
    } catch (const errors::Error&) {
      // What was found before it failed counts.
    }
    if (before_.size() == weights.size()) model.set_weights(before_);
    if (finder.found().empty()) {
      return "; run again, op by op, the step stays finite: random numbers "
             "differ, or sums overflow in another order";
    }
    return "; the first op that made it: " + finder.found();
  }

  const TerminateOnNaNOptions o_;
  Tensors before_;
};

}  // namespace

Callback TerminateOnNaN(TerminateOnNaNOptions options) {
  return make_callback<TerminateOnNaNCallback>(options);
}

}  // namespace berth::keras::callbacks
