// What compile() makes: the steps and their state.

#ifndef BERTH_KERAS_TRAINING_H_
#define BERTH_KERAS_TRAINING_H_

#include <optional>
#include <string>
#include <vector>

#include "berth/function.h"
#include "berth/keras/models.h"
#include "distribute/fit_rewrite.h"
#include "distribute/plan_step.h"
#include "distribute/strategy_core.h"

namespace berth::keras {

struct Model::Training {
  using Step = Function<Tensor(const Tensors&, const Tensors&)>;
  using Forward = Function<Tensors(const Tensors&)>;

  explicit Training(Layer model);

  // Throw errors::FailedPrecondition naming `what` before compile().
  Step& train_step(const char* what);
  Step& test_step(const char* what);
  const Step& last_train_step() const;
  Forward& forward();

  // The training step on so many examples, for strategies to plan. Throws
  // errors::FailedPrecondition when the model does not know its inputs.
  distribute::StepToPlan step_to_plan(int64_t batch, Site site);

  void reset_metrics();
  // "loss" first, then the metrics in the order given.
  std::vector<std::pair<std::string, double>> results() const;

  // Throws errors::InvalidArgument when the model belongs to another strategy
  // than that whose scope is open.
  void compile(CompileOptions options, Site site);
  // Who fit splits its batches for; 1 without a strategy.
  int num_replicas() const;
  // What was compiled last for the strategy; null: there is none.
  const distribute::FitRewrite* rewrite() const { return rewrite_.get(); }

  Layer model;
  // The strategy that the model's variables belong to; null: none.
  std::shared_ptr<distribute::StrategyCore> core;
  std::optional<CompileOptions> options;
  Site compiled_at = {};
  Metric loss_metric = metrics::Mean({.name = "loss"});
  bool stop = false;
  // Of a training step on so many examples, as planned last; -1: never.
  double predicted_us = -1;
  int64_t predicted_batch = 0;

 private:
  class StepScope;
  void find_strategy(Site site);
  FunctionOptions step_options(
      const char* name,
      std::shared_ptr<const distribute::FitRewrite>* rewrite) const;
  Tensor total_loss(const Tensors& outputs, const Tensors& targets) const;
  void update_metrics(const Tensor& loss, const Tensors& outputs,
                      const Tensors& targets) const;
  // As the compiled step is traced.
  Tensor step_of(const Tensors& inputs, const Tensors& targets);
  Tensor train(const Tensors& inputs, const Tensors& targets);
  Tensor test(const Tensors& inputs, const Tensors& targets);
  void check_compiled(const char* what) const;

  friend class Model;
  // Of the training step.
  std::shared_ptr<const distribute::FitRewrite> rewrite_;
  std::optional<Step> train_, test_;
  std::optional<Forward> forward_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_H_
