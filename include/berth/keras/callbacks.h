// callbacks: what runs around the steps of fit, evaluate and predict
// (tf.keras.callbacks).
//
// Fill in the hooks of a Callback, or derive from CallbackBase and hand in
// make_callback<Yours>(...). Hooks run on fit's thread, in the order of the
// list. A hook may call model.stop_training(); inside of fit model.fit_loop()
// says where it is (models.h). Nothing is read back from a device for a batch:
// model.metrics_result() does when it is asked.

#ifndef BERTH_KERAS_CALLBACKS_H_
#define BERTH_KERAS_CALLBACKS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "berth/tensor.h"

namespace berth::keras {

class Model;

// "loss", "accuracy", "val_loss", ... -> value.
using Logs = std::map<std::string, double>;

// What a callback keeps in checkpoints.
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
  // What it puts into `logs`, later callbacks and History see.
  virtual void on_epoch_end(Model& model, int epoch, Logs& logs);
  // `batch` counts from 0 in each epoch.
  virtual void on_train_batch_begin(Model& model, int64_t batch);
  virtual void on_train_batch_end(Model& model, int64_t batch);

  // Of evaluate, and of the validation in fit.
  virtual void on_test_begin(Model& model);
  virtual void on_test_end(Model& model, const Logs& logs);
  virtual void on_test_batch_begin(Model& model, int64_t batch);
  virtual void on_test_batch_end(Model& model, int64_t batch);

  virtual void on_predict_begin(Model& model);
  virtual void on_predict_end(Model& model);
  virtual void on_predict_batch_begin(Model& model, int64_t batch);
  virtual void on_predict_batch_end(Model& model, int64_t batch,
                                    const Tensors& outputs);

  // What a checkpoint saves, and gives back before on_train_begin of the fit
  // that goes on.
  virtual CallbackState get_state() const { return {}; }
  virtual void set_state(const CallbackState&) {}

 private:
  const std::string name_;
};

// The same as a table of hooks; empty ones cost nothing. Also the handle of a
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
  // Of checkpoints.
  std::function<CallbackState()> get_state = {};
  std::function<void(const CallbackState&)> set_state = {};
  std::shared_ptr<CallbackBase> object = {};
};

template <class T, class... Args>
Callback make_callback(Args&&... args) {
  return {.object = std::make_shared<T>(std::forward<Args>(args)...)};
}

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

// The hooks as arguments (keras.callbacks.LambdaCallback): the table itself.
inline Callback LambdaCallback(Callback hooks) { return hooks; }

}  // namespace callbacks
}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_H_
