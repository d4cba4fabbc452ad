// Models with steps of their own.

#include <fmt/format.h>

#include "berth/errors.h"
#include "keras/models/layer_state.h"
#include "keras/training/training.h"

namespace berth::keras {

Model::Training& ModelBase::training() const {
  if (training_) return *training_;
  throw errors::FailedPrecondition(
      fmt::format("model \"{}\" is asked for a step before compile(); expected "
                  "model.compile({{.optimizer = ...}}) first",
                  name()));
}

StepLogs ModelBase::train_step(const StepData& data) {
  return training().train(data);
}
StepLogs ModelBase::test_step(const StepData& data) {
  return training().test(data);
}
Tensors ModelBase::predict_step(const Tensors& x) {
  return training().model(x, false);
}

Tensor ModelBase::compute_loss(const StepData& data, const Tensors& y_pred) {
  StepLogs each;
  Model::Training& t = training();
  return t.total_loss(t.split_once(data, y_pred.size()), y_pred, &each);
}

Tensors ModelBase::forward(const Tensors& x, bool training) {
  return this->training().model(x, training);
}

void ModelBase::update_metrics(const StepData& data, const Tensors& y_pred) {
  Model::Training& t = training();
  t.update_metrics(t.split_once(data, y_pred.size()), y_pred);
}

const Optimizer& ModelBase::optimizer() const {
  Model::Training& t = training();
  t.check_compiled("optimizer()");
  return t.options->optimizer;
}

std::vector<Variable> ModelBase::trainable_variables() const {
  return training().variables_to_train();
}

void ModelBase::set_num_inputs(size_t n) { state().num_inputs = n; }

}  // namespace berth::keras
