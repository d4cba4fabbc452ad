// Steps: compiled, traced, run here or on parameter servers.

#include "keras/training/training.h"

#include <fmt/format.h>

#include <utility>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "distribute/automatic/choose_plan.h"
#include "distribute/parameter_server/coordinator.h"
#include "distribute/strategy/current_strategy.h"
#include "keras/callbacks/chief_only.h"
#include "keras/config/fields.h"
#include "keras/models/layer_state.h"
#include "keras/models/masks.h"
#include "keras/optimizers/optimizer_base.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/watched_ops.h"
#include "ops/op_call.h"
#include "ops/random_key.h"
#include "tensor/variable_state.h"

namespace berth::keras {

// A step is traced on the whole batch, on the strategy's device if it has
// exactly one. Tells what is asked of the model meanwhile how its data is.
class Model::Training::StepScope {
 public:
  StepScope(Training& t, bool splits_data, bool weighs_classes)
      : splits_data(splits_data),
        weighs_classes(weighs_classes),
        training_(t),
        outer_(std::exchange(t.step_, this)),
        step_(t.core.get()),
        on_(only_device(t.core.get())) {}
  ~StepScope() { training_.step_ = outer_; }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  const bool splits_data;     // into targets and weights, before the step
  const bool weighs_classes;  // in losses and metrics

 private:
  static Device* only_device(const distribute::StrategyCore* core) {
    const bool one =
        core && core->num_replicas() == 1 && core->replicas()[0].size() == 1;
    return one ? core->replicas()[0][0] : nullptr;
  }
  Training& training_;
  StepScope* const outer_;
  const GlobalStep step_;
  const OnDevice on_;
};

Model::Training::Training(Layer model)
    : model(std::move(model)), core(distribute::open_core()) {
  if (ModelBase* own = own_steps()) own->training_ = this;
}

Model::Training::~Training() {
  ModelBase* own = own_steps();
  if (own && own->training_ == this) own->training_ = nullptr;
}

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
  if (given.auto_scale_loss && computes_in_float16(model.base()->state())) {
    const auto& how = given.optimizer.base()->description;
    if (!how || how->class_name != "LossScaleOptimizer") {
      given.optimizer = LossScaleOptimizer(given.optimizer);
    }
  }
  // A new step: the old one was traced with other options.
  options = std::move(given);
  compiled_at = site;
  train_.reset();
  test_.reset();
  forward_.reset();
  trained_.reset();
  elsewhere_.clear();
  means_.clear();
  train_logs_.clear();
  if (ModelBase* own = own_steps()) {
    own->training_ = this;
  } else {
    // Known before the first step, for checkpoints.
    train_logs_ = {"loss"};
    const auto& names = model.base()->state().output_names;
    const size_t n = names.size();
    const std::vector<Loss> losses = n > 1 ? losses_of(n) : std::vector<Loss>();
    for (size_t i = 0; i < losses.size(); ++i) {
      if (losses[i].defined()) train_logs_.push_back(names[i] + "_loss");
    }
  }
  for (const std::string& name : train_logs_) {
    means_.try_emplace(name, metrics::Mean({.name = name}));
  }
  test_logs_ = train_logs_;
}

int Model::Training::num_replicas() const {
  return core ? core->num_replicas() : 1;
}

FunctionOptions Model::Training::step_options(
    const char* name,
    std::shared_ptr<const distribute::FitRewrite>* rewrite) const {
  FunctionOptions o{.name = name, .slices = options ? options->slices : 0};
  if (options) o.placement = options->placement;
  if (core && core->kind() != distribute::StrategyKind::kParameterServer) {
    // Training alone is timed: shares follow it.
    auto split = distribute::fit_rewrite(
        core,
        {.slices = o.slices, .balances = rewrite != nullptr, .agrees = true});
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
                  "model.compile({{.optimizer = ..., .loss = ...}}) first",
                  what, model.name()));
}

Model::Training::Step& Model::Training::train_step(const char* what) {
  check_compiled(what);
  if (!train_) {
    FunctionOptions o = step_options("train_step", &rewrite_);
    o.contract = options->contracts;
    train_.emplace([this](const Tensors& x,
                          const Tensors& y) { return step_of(x, y, true); },
                   std::move(o));
  }
  return *train_;
}

Model::Training::Step& Model::Training::test_step(const char* what) {
  check_compiled(what);
  if (!test_) {
    test_.emplace([this](const Tensors& x,
                         const Tensors& y) { return step_of(x, y, false); },
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
          const StepScope scope(*this, false, false);
          ModelBase* own = own_steps();
          return own ? own->predict_step(x) : model(x, false);
        },
        step_options("predict_step", nullptr));
  }
  return *forward_;
}

namespace {

// What fails in one of several tasks fails in all, with one error.
template <class Step>
auto in_all_tasks(distribute::StrategyCore* core, const Tensors& inputs,
                  const Step& step) {
  if (core == nullptr || !core->link()) return step();
  if (!inputs.empty()) core->use_batch(inputs[0]);
  try {
    return step();
  } catch (const errors::Error& e) {
    core->failed(e);
    throw;
  }
}

// Runs a step as a plan; from the first trace on that needs values, op by op.
// Replicas are always traced.
template <class Training, class Traced, class Eager>
Tensor planned_or_not(Training& t, const Traced& traced, const Eager& eager) {
  try {
    return traced();
  } catch (const errors::Error& e) {
    if (t.core != nullptr || dynamic_cast<const NeedsValues*>(&e) == nullptr) {
      throw;
    }
    report({"untraced", debugging::Severity::kLint,
            fmt::format("{}: the step runs op by op, for it cannot be traced: "
                        "{}",
                        t.model.name(), e.what()),
            t_state.site});
    t.options->run_eagerly = true;
    return eager();
  }
}

}  // namespace

bool Model::Training::op_by_op() const {
  if (options && options->run_eagerly) return true;
  return wants_op_by_op() && core == nullptr;
}

// An AutoStrategy chooses by the training step, at the first step of any kind.
void Model::Training::choose_strategy(const Tensors& inputs,
                                      const Tensors* targets, Site site) {
  if (core == nullptr || core->undecided() == nullptr) return;
  if (op_by_op()) {
    throw errors::InvalidArgument(
        fmt::format("model \"{}\"{}: run_eagerly with an AutoStrategy; "
                    "expected a step that "
                    "is traced: the strategy chooses by it",
                    model.name(), where_text(nullptr, site)));
  }
  check_compiled("a step under AutoStrategy");
  std::optional<UncountedRandomKeys> uncounted;
  if (!model.weights().empty()) uncounted.emplace();
  if (targets == nullptr) {
    const int64_t batch =
        inputs.empty() || inputs[0].rank() == 0 ? 1 : inputs[0].shape()[0];
    distribute::choose_plan(*core, step_to_plan(batch, site));
    return;
  }
  distribute::StepToPlan step;
  step.name = "train_step";
  for (const Tensors* list : {&inputs, targets}) {
    for (const Tensor& t : *list) step.args.push_back({t.shape(), t.dtype()});
  }
  const auto n = static_cast<std::ptrdiff_t>(inputs.size());
  step.fn = [this, n](const Tensors& args) {
    return Tensors{step_of({args.begin(), args.begin() + n},
                           {args.begin() + n, args.end()}, true)};
  };
  step.slices = options->slices;
  distribute::choose_plan(*core, step);
}

Tensor Model::Training::run_train(const Tensors& inputs, const Tensors& targets,
                                  Site site) {
  choose_strategy(inputs, &targets, site);
  tested_ = false;
  if (op_by_op()) {
    set_site(site);
    return step_of(inputs, targets, true);
  }
  if (const auto elsewhere = servers()) {
    return run_elsewhere(*elsewhere, train_step("train_on_batch"), inputs,
                         targets, site);
  }
  const WorksFor nobody(nullptr);  // a step is whole; fit looks between two
  return planned_or_not(
      *this,
      [&] {
        return in_all_tasks(core.get(), inputs, [&] {
          return train_step("train_on_batch")(inputs, targets, site);
        });
      },
      [&] { return step_of(inputs, targets, true); });
}

Tensor Model::Training::run_test(const Tensors& inputs, const Tensors& targets,
                                 Site site) {
  choose_strategy(inputs, nullptr, site);
  tested_ = true;
  if (op_by_op()) {
    set_site(site);
    return step_of(inputs, targets, false);
  }
  if (const auto elsewhere = servers()) {
    return run_elsewhere(*elsewhere, test_step("test_on_batch"), inputs,
                         targets, site);
  }
  return planned_or_not(
      *this,
      [&] {
        return in_all_tasks(core.get(), inputs, [&] {
          return test_step("test_on_batch")(inputs, targets, site);
        });
      },
      [&] { return step_of(inputs, targets, false); });
}

std::shared_ptr<distribute::ParameterServers> Model::Training::servers() const {
  return core ? core->servers() : nullptr;
}

void Model::Training::settle(Site site) {
  if (const auto elsewhere = servers()) elsewhere->join(site);
}

void settle(const Model& model, Site site) {
  const auto core = strategy_of(model);
  if (const auto elsewhere = core ? core->servers() : nullptr) {
    elsewhere->join(site);
  }
}

Tensor Model::Training::run_elsewhere(distribute::ParameterServers& servers,
                                      const Step& step, const Tensors& inputs,
                                      const Tensors& targets, Site site) {
  using Call =
      distribute::internal::Scheduler<Tensor(const Tensors&, const Tensors&)>;
  set_site(site);
  std::string key = train_ && &step == &*train_ ? "train" : "test";
  for (const Tensors* list : {&inputs, &targets}) {
    for (const Tensor& t : *list) key += " " + t.shape().str();
  }
  Elsewhere& one = elsewhere_[key];
  auto call = Call::call(step, inputs, targets);
  call.trace = [&one, trace = std::move(call.trace)](const Tensors& leaves,
                                                     std::any* structure) {
    const TracedRandomIds ids(one.ids);
    Tensors results = trace(leaves, structure);
    one.ids = ids.taken();
    return results;
  };
  const auto closure = servers.schedule(call, site, one.runs++);
  if (loop != nullptr || in_tests) return {};
  servers.join(site);
  return closure->wait()[0];
}

Tensors Model::Training::run_forward(const Tensors& inputs, Site site) {
  choose_strategy(inputs, nullptr, site);
  if (op_by_op()) {
    set_site(site);
    ModelBase* own = own_steps();
    return own ? own->predict_step(inputs) : model(inputs, false);
  }
  return in_all_tasks(core.get(), inputs,
                      [&] { return forward()(inputs, site); });
}

void Model::Training::run_train_eagerly(const Tensors& inputs,
                                        const Tensors& targets) {
  set_site(compiled_at);
  step_of(inputs, targets, true);
}

void Model::Training::run_loss_eagerly(const Tensors& inputs,
                                       const Tensors& targets) {
  set_site(compiled_at);
  const size_t n = num_outputs_seen();
  const StepScope scope(*this, n > 0, false);
  const StepData data = step_data(inputs, targets, n);
  const CallLosses of_calls;
  const MaskScope masks;
  const Tensors outputs = model(data.x, true);
  StepLogs each;
  loss_of(split_once(data, outputs.size()), outputs, &each);
}

size_t Model::Training::num_outputs_seen() const {
  return model.base()->state().build.output_shapes.size();
}

StepData Model::Training::step_data(const Tensors& inputs,
                                    const Tensors& targets, size_t n) const {
  if (n == 0) return {inputs, targets, {}};
  // The step of a model of its own may take any targets.
  return split(inputs, targets, n, own_steps() != nullptr);
}

Tensor Model::Training::step_of(const Tensors& inputs, const Tensors& targets,
                                bool training) {
  const size_t n = num_outputs_seen();
  const StepScope scope(*this, n > 0, training);
  const StepData data = step_data(inputs, targets, n);
  const CallLosses of_calls;
  const MaskScope masks;
  StepLogs logs;
  if (ModelBase* own = own_steps()) {
    logs = training ? own->train_step(data) : own->test_step(data);
  } else {
    logs = training ? train(data) : test(data);
  }
  for (auto& metric : of_calls.metrics()) logs.push_back(std::move(metric));
  if (training) keep_constraints();
  const Tensor& counted = targets.empty() ? inputs[0] : targets[0];
  return log(logs, counted, training ? &train_logs_ : &test_logs_);
}

StepData Model::Training::split_once(const StepData& data, size_t n) const {
  const bool is_split = step_ != nullptr
                            ? step_->splits_data
                            : data.y.size() == n || !data.sample_weight.empty();
  return is_split ? data : split(data.x, data.y, n, false);
}

bool Model::Training::weighs_classes() const {
  return step_ != nullptr && step_->weighs_classes && !class_weight_.empty();
}

void Model::Training::keep_constraints() const {
  for (const auto& [v, constraint] : model.constraints()) {
    set_site(compiled_at);
    v.assign(constraint(v.value(compiled_at)), compiled_at);
  }
}

std::vector<Variable> Model::Training::variables_to_train() {
  if (!trained_) trained_ = model.trainable_variables();
  if (trained_->empty()) {
    trained_.reset();
    throw errors::InvalidArgument(
        fmt::format("model \"{}\" has no trainable weights; expected a layer "
                    "with some, such as Dense",
                    model.name()));
  }
  return *trained_;
}

// Without the scale of losses in float16.
void Model::Training::add_gradient_norms(const Tensors& grads,
                                         const std::vector<Variable>& variables,
                                         StepLogs* logs) const {
  std::vector<std::pair<std::string, Tensor>> squares;  // by layer
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const std::string& name = variables[i].name();
    const std::string layer = name.substr(0, name.rfind('/'));
    const Tensor square =
        math::reduce_sum(math::square(math::cast(grads[i], float32)));
    if (squares.empty() || squares.back().first != layer) {
      squares.emplace_back(layer, square);
    } else {
      squares.back().second = squares.back().second + square;
    }
  }
  const Tensor scale =
      options->optimizer.scale_loss(ones({}, float32), compiled_at);
  for (const auto& [layer, square] : squares) {
    logs->emplace_back("gradient_norm/" + layer, math::sqrt(square) / scale);
  }
}

StepLogs Model::Training::train(const StepData& given) {
  const Optimizer& optimizer = options->optimizer;
  GradientTape tape;
  const Tensors outputs = model(given.x, true);
  const StepData data = split_once(given, outputs.size());
  StepLogs each;
  const Tensor loss = loss_of(data, outputs, &each);
  const std::vector<Variable> variables = variables_to_train();
  const Tensors grads = tape.gradient(optimizer.scale_loss(loss, compiled_at),
                                      variables, {}, compiled_at);
  if (options->gradient_norms) add_gradient_norms(grads, variables, &each);
  optimizer.apply_gradients(grads, variables, compiled_at);
  update_metrics(data, outputs);
  each.insert(each.begin(), {"loss", loss});
  return each;
}

StepLogs Model::Training::test(const StepData& given) {
  const Tensors outputs = model(given.x, false);
  const StepData data = split_once(given, outputs.size());
  StepLogs each;
  const Tensor loss = loss_of(data, outputs, &each);
  update_metrics(data, outputs);
  each.insert(each.begin(), {"loss", loss});
  return each;
}

}  // namespace berth::keras
