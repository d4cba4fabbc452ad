// What compile() makes: the steps and their state.

#ifndef BERTH_KERAS_TRAINING_H_
#define BERTH_KERAS_TRAINING_H_

#include <optional>
#include <string>
#include <vector>

#include "berth/function.h"
#include "berth/keras/models.h"

namespace berth::keras {

struct Model::Training {
  using Step = Function<Tensor(const Tensors&, const Tensors&)>;
  using Forward = Function<Tensors(const Tensors&)>;

  explicit Training(Layer model) : model(std::move(model)) {}

  // Throw errors::FailedPrecondition naming `what` before compile().
  Step& train_step(const char* what);
  Step& test_step(const char* what);
  const Step& last_train_step() const;
  Forward& forward();

  void reset_metrics();
  // "loss" first, then the metrics in the order given.
  std::vector<std::pair<std::string, double>> results() const;

  Layer model;
  std::optional<CompileOptions> options;
  Site compiled_at = {};
  Metric loss_metric = metrics::Mean({.name = "loss"});
  bool stop = false;

 private:
  Tensor total_loss(const Tensors& outputs, const Tensors& targets) const;
  void update_metrics(const Tensor& loss, const Tensors& outputs,
                      const Tensors& targets) const;
  Tensor train(const Tensors& inputs, const Tensors& targets);
  Tensor test(const Tensors& inputs, const Tensors& targets);
  void check_compiled(const char* what) const;

  friend class Model;
  std::optional<Step> train_, test_;
  std::optional<Forward> forward_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_H_
