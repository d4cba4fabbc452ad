// Calls the hooks of each callback.

#include "keras/callbacks/callback_list.h"

#include "berth/keras/models.h"

namespace berth::keras {

CallbackBase::CallbackBase(std::string name) : name_(std::move(name)) {}
CallbackBase::~CallbackBase() = default;
void CallbackBase::on_train_begin(Model&) {}
void CallbackBase::on_train_end(Model&) {}
void CallbackBase::on_epoch_begin(Model&, int) {}
void CallbackBase::on_epoch_end(Model&, int, Logs&) {}
void CallbackBase::on_train_batch_begin(Model&, int64_t) {}
void CallbackBase::on_train_batch_end(Model&, int64_t) {}
void CallbackBase::on_test_begin(Model&) {}
void CallbackBase::on_test_end(Model&, const Logs&) {}
void CallbackBase::on_test_batch_begin(Model&, int64_t) {}
void CallbackBase::on_test_batch_end(Model&, int64_t) {}
void CallbackBase::on_predict_begin(Model&) {}
void CallbackBase::on_predict_end(Model&) {}
void CallbackBase::on_predict_batch_begin(Model&, int64_t) {}
void CallbackBase::on_predict_batch_end(Model&, int64_t, const Tensors&) {}

namespace {

class TableOfHooks final : public CallbackBase {
 public:
  explicit TableOfHooks(const Callback& c) : c_(c) {}

  void on_train_begin(Model& m) override {
    if (c_.on_train_begin) c_.on_train_begin(m);
  }
  void on_train_end(Model& m) override {
    if (c_.on_train_end) c_.on_train_end(m);
  }
  void on_epoch_begin(Model& m, int epoch) override {
    if (c_.on_epoch_begin) c_.on_epoch_begin(m, epoch);
  }
  void on_epoch_end(Model& m, int epoch, Logs& logs) override {
    if (c_.on_epoch_end) c_.on_epoch_end(m, epoch, logs);
  }
  void on_train_batch_begin(Model& m, int64_t batch) override {
    if (c_.on_train_batch_begin) c_.on_train_batch_begin(m, batch);
  }
  void on_train_batch_end(Model& m, int64_t batch) override {
    if (c_.on_train_batch_end) c_.on_train_batch_end(m, batch);
  }
  void on_test_begin(Model& m) override {
    if (c_.on_test_begin) c_.on_test_begin(m);
  }
  void on_test_end(Model& m, const Logs& logs) override {
    if (c_.on_test_end) c_.on_test_end(m, logs);
  }
  void on_test_batch_begin(Model& m, int64_t batch) override {
    if (c_.on_test_batch_begin) c_.on_test_batch_begin(m, batch);
  }
  void on_test_batch_end(Model& m, int64_t batch) override {
    if (c_.on_test_batch_end) c_.on_test_batch_end(m, batch);
  }
  void on_predict_begin(Model& m) override {
    if (c_.on_predict_begin) c_.on_predict_begin(m);
  }
  void on_predict_end(Model& m) override {
    if (c_.on_predict_end) c_.on_predict_end(m);
  }
  void on_predict_batch_begin(Model& m, int64_t batch) override {
    if (c_.on_predict_batch_begin) c_.on_predict_batch_begin(m, batch);
  }
  void on_predict_batch_end(Model& m, int64_t batch,
                            const Tensors& outputs) override {
    if (c_.on_predict_batch_end) c_.on_predict_batch_end(m, batch, outputs);
  }

 private:
  const Callback c_;
};

bool has_hooks(const Callback& c) {
  return c.on_train_begin || c.on_train_end || c.on_epoch_begin ||
         c.on_epoch_end || c.on_train_batch_begin || c.on_train_batch_end ||
         c.on_test_begin || c.on_test_end || c.on_test_batch_begin ||
         c.on_test_batch_end || c.on_predict_begin || c.on_predict_end ||
         c.on_predict_batch_begin || c.on_predict_batch_end;
}

}  // namespace

CallbackList::CallbackList(const std::vector<Callback>& callbacks) {
  for (const Callback& c : callbacks) {
    if (c.object) list_.push_back(c.object);
    if (has_hooks(c)) list_.push_back(std::make_shared<TableOfHooks>(c));
  }
}

}  // namespace berth::keras
