// callbacks: what runs between the steps of fit (tf.keras.callbacks).
//
// Fill the hooks that you need; they run on fit's thread, in the order of the
// list. A hook may call model.stop_training().

#ifndef BERTH_KERAS_CALLBACKS_H_
#define BERTH_KERAS_CALLBACKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace berth::keras {

class Model;

// "loss", "accuracy", "val_loss", ... -> value.
using Logs = std::map<std::string, double>;

struct Callback {
  std::function<void(Model&)> on_train_begin = {};
  std::function<void(Model&)> on_train_end = {};
  std::function<void(Model&, int epoch)> on_epoch_begin = {};
  std::function<void(Model&, int epoch, const Logs&)> on_epoch_end = {};
  // Metrics are not read back for it: model.metrics_result() does when asked.
  std::function<void(Model&, int64_t batch)> on_train_batch_end = {};
};

namespace callbacks {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  int patience = 0;      // epochs without improvement that are borne
  double min_delta = 0;  // smaller changes are none
  bool restore_best_weights = false;
};
// Stops when `monitor` no longer improves: falls, or rises if its name says
// accuracy. Throws errors::InvalidArgument after an epoch without `monitor`.
Callback EarlyStopping(EarlyStoppingOptions options = {});

}  // namespace callbacks
}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_H_
