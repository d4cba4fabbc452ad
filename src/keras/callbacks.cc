#include "berth/keras/callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "berth/errors.h"
#include "berth/keras/models.h"

namespace berth::keras::callbacks {

namespace {

struct Watch {
  EarlyStoppingOptions options;
  bool rises = false;
  bool any = false;
  double best = 0;
  int waited = 0;
  Tensors weights;

  void look(Model& model, const Logs& logs) {
    const auto it = logs.find(options.monitor);
    if (it == logs.end()) {
      std::string have;
      for (const auto& [name, value] : logs) have += " " + name;
      throw errors::InvalidArgument(
          fmt::format("EarlyStopping: there is no \"{}\"; expected one of{}",
                      options.monitor, have));
    }
    const double gain = rises ? it->second - best : best - it->second;
    if (!any || gain > options.min_delta) {
      any = true;
      best = it->second;
      waited = 0;
      if (options.restore_best_weights) weights = model.get_weights();
      return;
    }
    if (++waited < std::max(options.patience, 1)) return;
    model.stop_training();
    if (options.restore_best_weights) model.set_weights(weights);
  }
};

}  // namespace

Callback EarlyStopping(EarlyStoppingOptions options) {
  auto watch = std::make_shared<Watch>();
  watch->rises = options.monitor.find("acc") != std::string::npos;
  watch->options = std::move(options);
  return {
      .on_train_begin =
          [watch](Model&) {
            watch->any = false;
            watch->waited = 0;
          },
      .on_epoch_end = [watch](Model& model, int,
                              const Logs& logs) { watch->look(model, logs); }};
}

}  // namespace berth::keras::callbacks
