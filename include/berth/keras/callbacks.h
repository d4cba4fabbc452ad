// callbacks: hooks around the steps of fit, evaluate and predict
// (tf.keras.callbacks).
//
// Fill in the hooks of a Callback, or derive from CallbackBase and pass
// make_callback<Yours>(...). Hooks run on fit's thread, in the order of the
// list. A hook may call model.stop_training(); inside fit, model.fit_loop()
// tells its position (models.h). Nothing is read back from a device for a
// batch, except by model.metrics_result().
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_CALLBACKS_H_
#define BERTH_KERAS_CALLBACKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "berth/tensor.h"

namespace berth::keras {

class Model;

// "loss", "accuracy", "val_loss", ... -> value.
using Logs = std::map<std::string, double>;

// The state of a callback in checkpoints.
struct CallbackState {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
  std::map<std::string, Tensor> tensors;
};

// A callback with state of its own: override what you need.
class CallbackBase {
 public:
  // The name is that of its state in checkpoints.
  explicit CallbackBase(std::string name = "callback");
  virtual ~CallbackBase();
  CallbackBase(const CallbackBase&) = delete;
  CallbackBase& operator=(const CallbackBase&) = delete;

  const std::string& name() const { return name_; }

  virtual void on_train_begin(Model& model);
  virtual void on_train_end(Model& model);
  virtual void on_epoch_begin(Model& model, int epoch);
  // Entries added to `logs` are seen by later callbacks and History.
  virtual void on_epoch_end(Model& model, int epoch, Logs& logs);
  // `batch` counts from 0 in each epoch.
  virtual void on_train_batch_begin(Model& model, int64_t batch);
  virtual void on_train_batch_end(Model& model, int64_t batch);

  // Called by evaluate, and by the validation in fit.
  virtual void on_test_begin(Model& model);
  virtual void on_test_end(Model& model, const Logs& logs);
  virtual void on_test_batch_begin(Model& model, int64_t batch);
  virtual void on_test_batch_end(Model& model, int64_t batch);

  virtual void on_predict_begin(Model& model);
  virtual void on_predict_end(Model& model);
  virtual void on_predict_batch_begin(Model& model, int64_t batch);
  virtual void on_predict_batch_end(Model& model, int64_t batch,
                                    const Tensors& outputs);

  // The state that a checkpoint saves, and restores before on_train_begin of
  // the resumed fit.
  virtual CallbackState get_state() const { return {}; }
  virtual void set_state(const CallbackState&) {}

 private:
  const std::string name_;
};

// A callback as a table of hooks; empty ones cost nothing. Also the handle of a
// CallbackBase, whose hooks run before those of the table.
struct Callback {
  std::function<void(Model&)> on_train_begin = {};
  std::function<void(Model&)> on_train_end = {};
  std::function<void(Model&, int epoch)> on_epoch_begin = {};
  std::function<void(Model&, int epoch, const Logs&)> on_epoch_end = {};
  std::function<void(Model&, int64_t batch)> on_train_batch_end = {};
  std::function<void(Model&, int64_t batch)> on_train_batch_begin = {};
  std::function<void(Model&)> on_test_begin = {};
  std::function<void(Model&, const Logs&)> on_test_end = {};
  std::function<void(Model&, int64_t batch)> on_test_batch_begin = {};
  std::function<void(Model&, int64_t batch)> on_test_batch_end = {};
  std::function<void(Model&)> on_predict_begin = {};
  std::function<void(Model&)> on_predict_end = {};
  std::function<void(Model&, int64_t batch)> on_predict_batch_begin = {};
  std::function<void(Model&, int64_t batch, const Tensors& outputs)>
      on_predict_batch_end = {};
  // For checkpoints.
  std::function<CallbackState()> get_state = {};
  std::function<void(const CallbackState&)> set_state = {};
  std::shared_ptr<CallbackBase> object = {};
};

template <class T, class... Args>
Callback make_callback(Args&&... args) {
  return {.object = std::make_shared<T>(std::forward<Args>(args)...)};
}

namespace callbacks {

// `mode` defines better: "min", "max", or "auto": higher if the name of the
// figure contains accuracy, auc, precision, recall or f1_score. A figure that
// an epoch lacks is an error, errors::InvalidArgument, except for validation
// figures after an epoch without validation (validation_freq).

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;  // smaller changes do not count
  int patience = 0;      // epochs to wait without improvement
  int verbose = 0;
  std::string mode = "auto";
  std::optional<double> baseline = std::nullopt;  // to be exceeded as well
  // At the end of fit, whatever ended it.
  bool restore_best_weights = false;
  int start_from_epoch = 0;
};
// Stops when `monitor` no longer improves.
Callback EarlyStopping(EarlyStoppingOptions options = {});

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int patience = 10;
  int verbose = 0;
  std::string mode = "auto";
  double min_delta = 1e-4;
  int cooldown = 0;  // epochs not counted after a change
  double min_lr = 0;
};
// Multiplies the rate by `factor` when `monitor` no longer improves; logs
// "learning_rate".
Callback ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});

// Sets the rate at the start of each epoch to schedule(epoch, rate); logs
// "learning_rate".
Callback LearningRateScheduler(
    std::function<double(int epoch, double rate)> schedule, int verbose = 0);

struct SwapEMAWeightsOptions {
  bool swap_on_epoch = false;  // also from one epoch's end to the next's start
};
// Evaluates and predicts with the averages of an optimizer that has use_ema.
Callback SwapEMAWeights(SwapEMAWeightsOptions options = {});

struct CSVLoggerOptions {
  std::string separator = ",";
  bool append = false;
};
// Writes a line of figures per epoch. Throws errors::InvalidArgument when the
// file cannot be written.
Callback CSVLogger(const std::string& filename, CSVLoggerOptions options = {});

struct TerminateOnNaNOptions {
  bool raise_error = false;  // throws errors::InvalidArgument instead
  // Keeps the weights before each step, and repeats a step that gave NaN op by
  // op to find its origin; the weights are then those before it.
  bool find_op = true;
};
// Stops when the loss is NaN or infinite; reads it back after each batch.
Callback TerminateOnNaN(TerminateOnNaNOptions options = {});

// Prints the bar of verbose = 1, for fits with verbose = 0.
Callback ProgbarLogger();

// "epoch", "batch", or a number of batches.
struct UpdateFreq {
  UpdateFreq(const char* when);  // NOLINT: {.update_freq = "batch"}
  UpdateFreq(int64_t batches);   // NOLINT
  UpdateFreq(int batches) : UpdateFreq(int64_t{batches}) {}  // NOLINT
  int64_t batches = 0;                                       // 0: epoch
};
// A batch, or {first, last}; 0: none.
struct ProfileBatch {
  ProfileBatch(int64_t batch) : ProfileBatch(batch, batch) {}  // NOLINT
  ProfileBatch(int batch) : ProfileBatch(int64_t{batch}) {}    // NOLINT
  ProfileBatch(int64_t first, int64_t last);
  int64_t first = 0, last = 0;
};
struct TensorBoardOptions {
  std::string log_dir = "";  // "": AIP_TENSORBOARD_LOG_DIR, else "logs"
  int histogram_freq = 0;   // epochs between histograms of the weights; 0: none
  bool write_graph = true;  // of the layers
  bool write_images = false;  // of the weights, with the histograms
  bool write_steps_per_second = false;
  // Figures of batches: they are read back for this.
  UpdateFreq update_freq = "epoch";
  // The batches of the first epoch that are profiled, from 1.
  ProfileBatch profile_batch = 0;
};
// Writes event files for TensorBoard to log_dir/train and log_dir/validation:
// epoch_loss and so on by epoch, batch_loss by step; a profile to
// log_dir/plugins/profile. Throws errors::InvalidArgument for a profile_batch
// that ends before it begins.
Callback TensorBoard(TensorBoardOptions options = {});

// The hooks as arguments (keras.callbacks.LambdaCallback): the table itself.
inline Callback LambdaCallback(Callback hooks) { return hooks; }

}  // namespace callbacks
}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_H_
