// ProgbarLogger.

#include <memory>

#include "berth/keras/models.h"
#include "keras/callbacks/progress_bar.h"

namespace berth::keras::callbacks {

namespace {

class ProgbarLoggerCallback final : public CallbackBase {
 public:
  ProgbarLoggerCallback() : CallbackBase("progbar_logger") {}

  void on_train_begin(Model& m) override {
    bar_ = std::make_unique<ProgressBar>(1, m.fit_loop()->epochs());
  }
  void on_epoch_begin(Model& m, int epoch) override {
    bar_->begin_epoch(epoch, m.fit_loop()->steps());
  }
  void on_train_batch_end(Model& m, int64_t batch) override {
    bar_->step(batch + 1, [&] {
      const Logs logs = m.metrics_result();
      return NamedValues(logs.begin(), logs.end());
    });
  }
  void on_epoch_end(Model& m, int, Logs& logs) override {
    bar_->end_epoch(m.fit_loop()->batch(),
                    NamedValues(logs.begin(), logs.end()));
  }

 private:
  std::unique_ptr<ProgressBar> bar_;
};

}  // namespace

Callback ProgbarLogger() { return make_callback<ProgbarLoggerCallback>(); }

}  // namespace berth::keras::callbacks
