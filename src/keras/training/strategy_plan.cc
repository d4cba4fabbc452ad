// The training step of a model, planned before it runs.

#include <fmt/format.h>

#include "berth/distribute.h"
#include "berth/errors.h"
#include "distribute/automatic/choose_plan.h"
#include "distribute/prediction/plan_step.h"
#include "function/abstract_call.h"
#include "keras/losses/loss_shapes.h"
#include "keras/models/layer_state.h"
#include "keras/training/training.h"
#include "op/device_scope.h"
#include "ops/random_key.h"

namespace berth::keras {

namespace {

// With `batch` examples; the other dimensions are what the model was built for.
std::vector<TensorSpec> with_batch(std::vector<TensorSpec> specs,
                                   int64_t batch) {
  for (TensorSpec& s : specs) {
    if (s.shape.rank() > 0) s.shape[0] = batch;
  }
  return specs;
}

// What a loss expects beside predictions: the same, or labels of classes.
TensorSpec target_of(const Loss& loss, const TensorSpec& prediction) {
  TensorSpec spec = prediction;
  spec.name.clear();
  if (!takes_labels(loss) || spec.shape.rank() < 2) return spec;
  const Shape& s = prediction.shape;
  spec.shape = Shape(std::vector<int64_t>(s.begin(), s.end() - 1));
  spec.dtype = int32;
  return spec;
}

}  // namespace

distribute::StepToPlan Model::Training::step_to_plan(int64_t batch, Site site) {
  check_compiled("strategy_plan");
  const LayerState& state = model.base()->state();
  std::vector<TensorSpec> inputs = with_batch(state.build.input_specs, batch);
  for (const TensorSpec& s : inputs) {
    if (s.shape.is_fully_defined()) continue;
    inputs.clear();
    break;
  }
  if (inputs.empty()) {
    throw errors::FailedPrecondition(fmt::format(
        "a plan of model \"{}\"{}: the shape of its inputs is not known; "
        "expected an Input layer first, model.build({{-1, ...}}), or a step on "
        "data before",
        model.name(), where_text(nullptr, site)));
  }
  const std::vector<TensorSpec> outputs =
      abstract_call([&](const Tensors& x) { return model(x, true); }, inputs);
  distribute::StepToPlan step;
  step.name = "train_step";
  step.args = inputs;
  const std::vector<Loss> losses = losses_of(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!losses[i].defined()) continue;
    step.args.push_back(target_of(losses[i], outputs[i]));
  }
  const size_t n = inputs.size();
  step.fn = [this, n](const Tensors& args) {
    const auto middle = args.begin() + static_cast<std::ptrdiff_t>(n);
    return Tensors{step_of({args.begin(), middle}, {middle, args.end()}, true)};
  };
  step.trainable = model.trainable_variables();
  step.slices = options->slices;
  return step;
}

distribute::StrategyPlan Model::strategy_plan(
    const distribute::Strategy& strategy, int64_t batch_size, Site site) const {
  Training& t = *training_;
  // Weights that are made here stay, and count.
  std::optional<UncountedRandomKeys> uncounted;
  if (!weights().empty()) uncounted.emplace();
  const distribute::StepToPlan step = t.step_to_plan(batch_size, site);
  if (t.core != strategy.core()) {
    throw errors::InvalidArgument(fmt::format(
        "a plan of model \"{}\"{}: it is compiled for {}; expected the {} that "
        "is asked: make and compile the model in its scope",
        name(), where_text(nullptr, site),
        t.core ? "another " + t.core->name() : "no strategy", strategy.name()));
  }
  if (t.core->undecided() != nullptr) distribute::choose_plan(*t.core, step);
  if (batch_size < t.core->num_replicas()) {
    throw errors::InvalidArgument(fmt::format(
        "a plan of model \"{}\"{}: the batch has {} examples, there are {} "
        "replicas; expected at least one example for each",
        name(), where_text(nullptr, site), batch_size, t.core->num_replicas()));
  }
  distribute::StrategyPlan plan = distribute::plan_batch(
      t.core, step, [&](int64_t batch) { return t.step_to_plan(batch, site); });
  t.predicted_us = plan.step_us;
  t.predicted_batch = batch_size;
  return plan;
}

}  // namespace berth::keras
