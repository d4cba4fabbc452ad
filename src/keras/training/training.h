// What compile() makes: the steps and their state.

#ifndef BERTH_KERAS_TRAINING_TRAINING_H_
#define BERTH_KERAS_TRAINING_TRAINING_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/function.h"
#include "berth/keras/models.h"
#include "distribute/prediction/plan_step.h"
#include "distribute/strategy/fit_rewrite.h"
#include "distribute/strategy/strategy_core.h"
#include "ops/random_key.h"

namespace berth::keras {

struct Model::Training {
  // The servers that run the steps; null: this process. Throws
  // errors::FailedPrecondition when they have ended.
  std::shared_ptr<distribute::ParameterServers> servers() const;
  // Waits for steps that run elsewhere.
  void settle(Site site);

  // Whether the step is not compiled: by compile(), or so that the first op
  // that makes a NaN is found.
  bool op_by_op() const;

  // Called with inputs, and targets with weights after them.
  using Step = Function<Tensor(const Tensors&, const Tensors&)>;
  using Forward = Function<Tensors(const Tensors&)>;

  explicit Training(Layer model);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Throw errors::FailedPrecondition naming `what` before compile().
  Step& train_step(const char* what);
  Step& test_step(const char* what);
  const Step& last_train_step() const;
  Forward& forward();
  void check_compiled(const char* what) const;

  // Run a step; what is logged next is of that kind. Return the loss.
  Tensor run_train(const Tensors& inputs, const Tensors& targets, Site site);
  Tensor run_test(const Tensors& inputs, const Tensors& targets, Site site);
  Tensors run_forward(const Tensors& inputs, Site site);
  // The step op by op, whatever compile() said; without results.
  void run_train_eagerly(const Tensors& inputs, const Tensors& targets);

  // What it computes up to its loss; nothing is updated but by layers.
  void run_loss_eagerly(const Tensors& inputs, const Tensors& targets);

  // The training step on so many examples, for strategies to plan. Throws
  // errors::FailedPrecondition when the model does not know its inputs.
  distribute::StepToPlan step_to_plan(int64_t batch, Site site);

  // What the steps log, "loss" first, in order.
  std::vector<std::pair<std::string, Metric>> logged() const;
  // All that steps write, for checkpoints.
  std::map<std::string, Metric> all_metrics() const;
  // The mean of what steps return under that name.
  Metric mean_named(const std::string& name);
  std::string random_state() const;
  void set_random_state(const std::string& text);
  void reset_metrics();
  std::vector<std::pair<std::string, double>> results() const;

  // Throws errors::InvalidArgument when the model belongs to another strategy
  // than that whose scope is open.
  void compile(CompileOptions options, Site site);
  // Who fit splits its batches for; 1 without a strategy.
  int num_replicas() const;
  // What was compiled last for the strategy; null: there is none.
  const distribute::FitRewrite* rewrite() const { return rewrite_.get(); }

  // For later training steps; other weights than before trace anew. Throws
  // errors::InvalidArgument for a weight below 0 or not finite.
  void set_class_weight(const std::map<int64_t, double>& weights, Site site);

  // Parts of a step. `n`: outputs of the model.
  ModelBase* own_steps() const;
  // Layers may add to the loss in call(): they are not asked before.
  bool adds_losses() const;
  // One per output; not defined where an output has none.
  std::vector<Loss> losses_of(size_t n) const;
  // The metrics of each output, with the names that they have in logs.
  std::vector<std::vector<std::pair<std::string, Metric>>> metrics_of(
      size_t n) const;
  // Puts targets where their outputs are, and weights after them into
  // sample_weight. Throws errors::InvalidArgument when there are too few or
  // many, unless `lenient`.
  StepData split(Tensors inputs, const Tensors& targets, size_t n,
                 bool lenient) const;
  // Splits what a step got, unless it is split already. Outside of steps, data
  // with a target for each output is.
  StepData split_once(const StepData& data, size_t n) const;
  // The sum; those of outputs, if there are several, go to `each`.
  Tensor total_loss(const StepData& data, const Tensors& outputs,
                    StepLogs* each) const;
  void update_metrics(const StepData& data, const Tensors& outputs) const;
  std::vector<Variable> variables_to_train();
  // Adds the norm of the gradients of each layer.
  void add_gradient_norms(const Tensors& grads,
                          const std::vector<Variable>& variables,
                          StepLogs* logs) const;
  StepLogs train(const StepData& data);
  StepLogs test(const StepData& data);

  Layer model;
  // The strategy that the model's variables belong to; null: none.
  std::shared_ptr<distribute::StrategyCore> core;
  std::optional<CompileOptions> options;
  Site compiled_at = {};
  bool stop = false;
  FitLoop* loop = nullptr;
  bool in_tests = false;  // of evaluate
  // The time of a training step on so many examples, as planned last.
  double predicted_us = -1;
  int64_t predicted_batch = 0;
  // What the last epoch waited for, for reports; "" if for nothing much.
  std::string input_verdict;

 private:
  class StepScope;
  // Schedules a step. Inside of fit and evaluate it may not be done yet, and
  // there is no loss.
  Tensor run_elsewhere(distribute::ParameterServers& servers, const Step& step,
                       const Tensors& inputs, const Tensors& targets,
                       Site site);
  void find_strategy(Site site);
  // Lets an AutoStrategy choose, unless it has; `targets` null: not known.
  void choose_strategy(const Tensors& inputs, const Tensors* targets,
                       Site site);
  FunctionOptions step_options(
      const char* name,
      std::shared_ptr<const distribute::FitRewrite>* rewrite) const;
  // How many outputs the model had in its first call; 0 before it.
  size_t num_outputs_seen() const;
  // The data of a step of a model with `n` outputs, split if that is known.
  StepData step_data(const Tensors& inputs, const Tensors& targets,
                     size_t n) const;
  bool weighs_classes() const;
  // The step as it is traced.
  Tensor step_of(const Tensors& inputs, const Tensors& targets, bool training);
  // Adds the scalars to their means, weighted by the batch.
  Tensor log(const StepLogs& logs, const Tensor& counted,
             std::vector<std::string>* names);
  // What training minimises, by compute_loss() of a model of its own.
  Tensor loss_of(const StepData& data, const Tensors& outputs, StepLogs* each);
  Tensor weights_of(const StepData& data, size_t output, size_t n) const;
  Tensor class_weights(const Tensor& y) const;
  // After an update: weights become what their constraints say.
  void keep_constraints() const;

  friend class Model;
  // What the training step is made with.
  std::shared_ptr<const distribute::FitRewrite> rewrite_;
  std::optional<Step> train_, test_;
  std::optional<Forward> forward_;
  // Steps that servers run, by kind and shapes.
  struct Elsewhere {
    std::optional<TracedRandomIds::Ids> ids;  // none: not traced
    uint64_t runs = 0;
  };
  std::map<std::string, Elsewhere> elsewhere_;
  // Means of what steps return, by name; names in order, of each kind of step.
  std::map<std::string, Metric> means_;
  std::vector<std::string> train_logs_, test_logs_;
  bool tested_ = false;  // a test step ran last
  // Those that the first trace after compile() found: Keras' rule.
  std::optional<std::vector<Variable>> trained_;
  std::map<int64_t, double> class_weight_;
  StepScope* step_ = nullptr;  // the step that is traced; null: none is
};

// Brings tensors that have names into the order of `names`. Throws
// errors::InvalidArgument naming `what` when some are unknown or missing.
Tensors in_order(const char* what, const NamedTensors& tensors,
                 const std::vector<std::string>& names, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_TRAINING_H_
