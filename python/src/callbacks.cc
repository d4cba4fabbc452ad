#include "callbacks.h"

#include "base/clock.h"
#include "convert.h"
#include "held.h"

namespace berth::python {

namespace {

// A callback of Python's for the time of one fit.
class OwnCallback final : public keras::CallbackBase {
 public:
  explicit OwnCallback(nb::object o) : o_(held(std::move(o))) {}
  void on_train_begin(keras::Model&) override { run("on_train_begin"); }
  void on_train_end(keras::Model&) override { run("on_train_end"); }
  void on_epoch_begin(keras::Model&, int epoch) override {
    run("on_epoch_begin", epoch);
  }
  void on_epoch_end(keras::Model&, int epoch, keras::Logs& logs) override {
    const Gil gil;
    nb::object d = logs_of(logs);
    (*o_).attr("on_epoch_end")(epoch, d);
    for (auto [key, value] : nb::cast<nb::dict>(d)) {
      logs[nb::cast<std::string>(key)] = nb::cast<double>(nb::float_(value));
    }
  }
  void on_train_batch_begin(keras::Model&, int64_t batch) override {
    run("on_train_batch_begin", batch);
  }
  void on_train_batch_end(keras::Model&, int64_t batch) override {
    run("_on_train_batch_end", batch);
  }
  void on_test_begin(keras::Model&) override { run("on_test_begin"); }
  void on_test_end(keras::Model&, const keras::Logs& logs) override {
    const Gil gil;
    (*o_).attr("on_test_end")(logs_of(logs));
  }
  void on_test_batch_begin(keras::Model&, int64_t batch) override {
    run("on_test_batch_begin", batch);
  }
  void on_test_batch_end(keras::Model&, int64_t batch) override {
    run("_on_test_batch_end", batch);
  }
  void on_predict_batch_begin(keras::Model&, int64_t batch) override {
    run("on_predict_batch_begin", batch);
  }
  void on_predict_batch_end(keras::Model&, int64_t batch,
                            const Tensors& outputs) override {
    const Gil gil;
    (*o_).attr("_on_predict_batch_end")(batch, to_python(outputs));
  }
  void on_predict_begin(keras::Model&) override { run("on_predict_begin"); }
  void on_predict_end(keras::Model&) override { run("on_predict_end"); }

 private:
  template <class... Args>
  void run(const char* name, Args... args) {
    const Gil gil;
    (*o_).attr(name)(args...);
  }
  Held o_;
};

// Ctrl-C ends fit, evaluate and predict after the batch that runs.
class Interrupts final : public keras::CallbackBase {
 public:
  void on_train_batch_end(keras::Model&, int64_t) override { check(); }
  void on_test_batch_end(keras::Model&, int64_t) override { check(); }
  void on_predict_batch_end(keras::Model&, int64_t, const Tensors&) override {
    check();
  }

 private:
  void check() {
    constexpr double kEachUs = 20e3;  // the lock of Python is not for nothing
    const double now = host_clock_us();
    if (now - last_us_ < kEachUs) return;
    last_us_ = now;
    const Gil gil;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
  double last_us_ = 0;
};

}  // namespace

nb::object logs_of(const keras::Logs& logs) {
  nb::dict d;
  for (const auto& [name, value] : logs) d[name.c_str()] = value;
  return d;
}

std::vector<keras::Callback> callbacks_of(nb::handle list) {
  std::vector<keras::Callback> all;
  all.push_back({.object = std::make_shared<Interrupts>()});
  for (nb::handle o : list) {
    if (nb::isinstance<keras::Callback>(o)) {
      all.push_back(nb::cast<const keras::Callback&>(o));
    } else {
      all.push_back({.object = std::make_shared<OwnCallback>(nb::borrow(o))});
    }
  }
  return all;
}

}  // namespace berth::python
