// Model: compile, results, placement and plans of its training step.

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/output.h"
#include "base/thread_pool.h"
#include "berth/errors.h"
#include "berth/keras/models.h"
#include "distribute/prediction/plan_step.h"
#include "function/abstract_call.h"
#include "function/traced_text.h"
#include "keras/models/layer_state.h"
#include "keras/training/training.h"
#include "op/device_scope.h"

namespace berth::keras {

Model::Model(std::shared_ptr<LayerBase> base)
    : Layer(std::move(base)), training_(std::make_shared<Training>(*this)) {}

void Model::build(const Shape& input, DType dtype) {
  Shape shape = input;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) shape[i] = kUnknownDim;
  }
  abstract_call([&](const Tensors& x) { return (*this)(x, false); },
                {{shape, dtype, {}}});
}

void Model::compile(CompileOptions options, Site site) {
  const bool has_loss =
      training_->own_steps() != nullptr || options.loss.defined() ||
      training_->adds_losses() ||
      (!options.losses.empty() &&
       std::all_of(options.losses.begin(), options.losses.end(),
                   [](const Loss& l) { return l.defined(); }));
  if (!has_loss) {
    throw errors::InvalidArgument(
        fmt::format("compile of model \"{}\": there is no loss{}; expected "
                    "{{.loss = \"mse\"}} or one of keras::losses",
                    name(), where_text(nullptr, site)));
  }
  if (options.slices < 0 || options.slices > ThreadPool::kMaxChunks) {
    throw errors::InvalidArgument(fmt::format(
        "compile of model \"{}\": slices is {}{}; expected 0 (one per core) to "
        "{}",
        name(), options.slices, where_text(nullptr, site),
        ThreadPool::kMaxChunks));
  }
  training_->compile(std::move(options), site);
}

Optimizer Model::optimizer() const {
  training_->check_compiled("optimizer()");
  return training_->options->optimizer;
}
std::vector<Metric> Model::metrics() const {
  training_->check_compiled("metrics()");
  std::vector<Metric> list;
  for (const auto& [name, m] : training_->logged()) list.push_back(m);
  return list;
}

std::vector<std::string> Model::metrics_names() const {
  training_->check_compiled("metrics_names()");
  std::vector<std::string> names;
  for (const auto& [name, m] : training_->logged()) names.push_back(name);
  return names;
}

Logs Model::metrics_result() const {
  training_->train_step("metrics_result");
  const auto list = training_->results();
  return Logs(list.begin(), list.end());
}
void Model::reset_metrics() {
  training_->train_step("reset_metrics");
  training_->reset_metrics();
}
void Model::stop_training() { training_->stop = true; }
FitLoop* Model::fit_loop() const { return training_->loop; }

FunctionPlanInfo Model::train_plan_info() const {
  return training_->last_train_step().plan_info();
}
// Before the first step it is traced alone, for batches of 32.
std::string Model::train_plan_text(const std::string& stage) const {
  Training& t = *training_;
  const bool has_run = t.train_ && t.train_->num_traces() > 0;
  if (has_run || !t.options || (stage != "trace" && stage != "optimize")) {
    return t.last_train_step().text(stage);
  }
  const distribute::StepToPlan step = t.step_to_plan(32, {});
  return traced_text(step.name, step.fn, step.args, stage);
}
placement::Report Model::placement() const {
  std::vector<placement::Report> all =
      training_->last_train_step().placements();
  const auto most = std::max_element(
      all.begin(), all.end(),
      [](const auto& a, const auto& b) { return a.steps < b.steps; });
  if (most == all.end()) {
    throw errors::FailedPrecondition(fmt::format(
        "model \"{}\" has not trained yet; call fit or train_on_batch first",
        name()));
  }
  most->name = name();
  if (!training_->input_verdict.empty()) {
    most->verdicts.push_back(training_->input_verdict);
  }
  return std::move(*most);
}

placement::Explanation Model::explain(const std::string& op) const {
  return training_->last_train_step().explain(op);
}

int Model::num_train_traces() const {
  return training_->train_ ? training_->train_->num_traces() : 0;
}

void Model::summary() const {
  std::ostringstream text;
  summary(text);
  user_output().write(text.str());
}

}  // namespace berth::keras
