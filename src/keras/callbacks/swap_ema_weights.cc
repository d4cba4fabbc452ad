// SwapEMAWeights.

#include "berth/keras/models.h"

namespace berth::keras::callbacks {

namespace {

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

Callback SwapEMAWeights(SwapEMAWeightsOptions options) {
  return make_callback<SwapEMAWeightsCallback>(options.swap_on_epoch);
}

}  // namespace berth::keras::callbacks
