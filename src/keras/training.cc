#include "keras/training.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "distribute/core_of.h"
#include "keras/layer_state.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"
#include "tensor/variable_state.h"

namespace berth::keras {

namespace {

// Length of the first axis, as a float.
Tensor count_rows(const Tensor& y) {
  const Tensor numbers = math::cast(y, float32);
  return size_ratio(numbers, numbers[{0}]);
}

}  // namespace

// A step is traced on the whole batch, for the strategy's only device if it has
// but one.
class Model::Training::StepScope {
 public:
  explicit StepScope(const Training& t)
      : step_(t.core.get()), on_(only_device(t.core.get())) {}

 private:
  static Device* only_device(const distribute::StrategyCore* core) {
    const bool one =
        core && core->num_replicas() == 1 && core->replicas()[0].size() == 1;
    return one ? core->replicas()[0][0] : nullptr;
  }
  const GlobalStep step_;
  const OnDevice on_;
};

Model::Training::Training(Layer model)
    : model(std::move(model)), core(distribute::open_core()) {}

// The scope that is open, else that in which the model was made, else the
// strategy of its variables.
void Model::Training::find_strategy(Site site) {
  const std::vector<Variable> weights = model.weights();
  std::shared_ptr<distribute::StrategyCore> open = distribute::open_core();
  if (open == nullptr) open = core;
  for (const Variable& v : weights) {
    const auto of = distribute::core_of(v.handle());
    if (open == nullptr) open = of;
    if (of == open || open == nullptr) continue;
    if (of == nullptr && open->num_replicas() == 1) continue;
    throw errors::InvalidArgument(fmt::format(
        "compile of model \"{}\": variable \"{}\"{} was made in {}, and the "
        "model is compiled for a {}{}; expected the model to be made in the "
        "scope of that strategy",
        model.name(), v.name(),
        where_text(nullptr, variable_state(v.handle()).site),
        of ? "the scope of another " + of->name() : "no scope of a strategy",
        open->name(), where_text(nullptr, site)));
  }
  core = std::move(open);
}

void Model::Training::compile(CompileOptions given, Site site) {
  find_strategy(site);
  if (given.slices > 0 && given.slices < num_replicas()) {
    throw errors::InvalidArgument(fmt::format(
        "compile of model \"{}\": {} slices for {} replicas{}; expected at "
        "least one slice for each, or 0",
        model.name(), given.slices, num_replicas(), where_text(nullptr, site)));
  }
  // A new step: the old one was traced with other options.
  options = std::move(given);
  compiled_at = site;
  train_.reset();
  test_.reset();
  forward_.reset();
}

int Model::Training::num_replicas() const {
  return core ? core->num_replicas() : 1;
}

FunctionOptions Model::Training::step_options(
    const char* name,
    std::shared_ptr<const distribute::FitRewrite>* rewrite) const {
  FunctionOptions o{.name = name, .slices = options ? options->slices : 0};
  if (options) o.placement = options->placement;
  if (core) {
    // Training alone is timed: shares follow it.
    auto split = distribute::fit_rewrite(
        core, {.slices = o.slices, .balances = rewrite != nullptr});
    if (rewrite) *rewrite = split;
    o.rewrite = std::move(split);
  } else if (o.slices > 0) {
    o.rewrite = distribute::slices_rewrite(o.slices);
  }
  return o;
}

void Model::Training::check_compiled(const char* what) const {
  if (options) return;
  throw errors::FailedPrecondition(
      fmt::format("{} of model \"{}\" before compile(); expected "
                  "model.compile({{.optimizer "
                  "= ..., .loss = ...}}) first",
                  what, model.name()));
}

Model::Training::Step& Model::Training::train_step(const char* what) {
  check_compiled(what);
  if (!train_) {
    FunctionOptions o = step_options("train_step", &rewrite_);
    o.contract = options->contracts;
    train_.emplace(
        [this](const Tensors& x, const Tensors& y) { return step_of(x, y); },
        std::move(o));
  }
  return *train_;
}

Model::Training::Step& Model::Training::test_step(const char* what) {
  check_compiled(what);
  if (!test_) {
    test_.emplace(
        [this](const Tensors& x, const Tensors& y) {
          const StepScope scope(*this);
          return test(x, y);
        },
        step_options("test_step", nullptr));
  }
  return *test_;
}

const Model::Training::Step& Model::Training::last_train_step() const {
  if (train_) return *train_;
  throw errors::FailedPrecondition(fmt::format(
      "model \"{}\" has not trained yet; call fit or train_on_batch first",
      model.name()));
}

Model::Training::Forward& Model::Training::forward() {
  if (!forward_) {
    forward_.emplace(
        [this](const Tensors& x) {
          const StepScope scope(*this);
          return model(x, false);
        },
        step_options("predict_step", nullptr));
  }
  return *forward_;
}

Tensor Model::Training::total_loss(const Tensors& outputs,
                                   const Tensors& targets) const {
  const CompileOptions& o = *options;
  const size_t n = outputs.size();
  if (targets.size() != n || (!o.losses.empty() && o.losses.size() != n)) {
    throw errors::InvalidArgument(fmt::format(
        "model \"{}\" has {} outputs, {} targets and {} losses; expected one "
        "target (and one loss) per output",
        model.name(), n, targets.size(),
        o.losses.empty() ? size_t{1} : o.losses.size()));
  }
  Tensor sum;
  for (size_t i = 0; i < n; ++i) {
    const Loss& loss = o.losses.empty() ? o.loss : o.losses[i];
    const Tensor one = loss(targets[i], outputs[i], compiled_at);
    if (one.rank() != 0) {
      throw errors::InvalidArgument(fmt::format(
          "model \"{}\": loss {} is {}; expected a scalar: its reduction is "
          "\"{}\"",
          model.name(), loss.name(), one.shape().str(), loss.reduction()));
    }
    sum = sum.defined() ? math::add(sum, one, compiled_at) : one;
  }
  return sum;
}

void Model::Training::update_metrics(const Tensor& loss, const Tensors& outputs,
                                     const Tensors& targets) const {
  // The mean over all samples, though batches differ in size.
  const Tensor& y = targets[0];
  const int64_t batch = y.rank() > 0 ? y.shape()[0] : 1;
  // A batch that is not known yet is counted by the step.
  const Tensor n =
      batch >= 0 ? constant(static_cast<float>(batch)) : count_rows(y);
  const Tensor weighted =
      loss.dtype() == float32 ? loss : math::cast(loss, float32, compiled_at);
  loss_metric.total().assign_add(math::multiply(weighted, n, compiled_at),
                                 compiled_at);
  loss_metric.count().assign_add(n, compiled_at);
  set_site(compiled_at);
  for (const Metric& m : options->metrics) {
    m.update_state(targets[0], outputs[0]);
  }
}

Tensor Model::Training::step_of(const Tensors& inputs, const Tensors& targets) {
  const StepScope scope(*this);
  return train(inputs, targets);
}

Tensor Model::Training::train(const Tensors& inputs, const Tensors& targets) {
  GradientTape tape;
  const Tensors outputs = model(inputs, true);
  const Tensor loss = total_loss(outputs, targets);
  const std::vector<Variable> variables = model.trainable_variables();
  if (variables.empty()) {
    throw errors::InvalidArgument(
        fmt::format("model \"{}\" has no trainable weights; expected a layer "
                    "with some, such as Dense",
                    model.name()));
  }
  const Tensors grads = tape.gradient(loss, variables, {}, compiled_at);
  options->optimizer.apply_gradients(grads, variables, compiled_at);
  update_metrics(loss, outputs, targets);
  return loss;
}

Tensor Model::Training::test(const Tensors& inputs, const Tensors& targets) {
  const Tensors outputs = model(inputs, false);
  const Tensor loss = total_loss(outputs, targets);
  update_metrics(loss, outputs, targets);
  return loss;
}

void Model::Training::reset_metrics() {
  loss_metric.reset_state();
  for (const Metric& m : options->metrics) m.reset_state();
}

std::vector<std::pair<std::string, double>> Model::Training::results() const {
  std::vector<std::pair<std::string, double>> list;
  list.emplace_back("loss", loss_metric.result());
  for (const Metric& m : options->metrics) {
    list.emplace_back(m.name(), m.result());
  }
  return list;
}

}  // namespace berth::keras
