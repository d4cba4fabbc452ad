// What optimizers share: slots, the rate, the step counter, and what happens
// to gradients and variables around an update.

#ifndef BERTH_KERAS_OPTIMIZERS_OPTIMIZER_BASE_H_
#define BERTH_KERAS_OPTIMIZERS_OPTIMIZER_BASE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "berth/keras/schedules.h"
#include "berth/tensor.h"
#include "berth/train.h"
#include "berth/variable.h"

namespace berth::keras {

// Those of optimizers.h that all have.
struct OptimizerOptions {
  double weight_decay = 0;
  double clipnorm = 0;
  double clipvalue = 0;
  double global_clipnorm = 0;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;
  double loss_scale_factor = 0;
  int64_t gradient_accumulation_steps = 0;
  std::string name = {};
};

template <class Options>
OptimizerOptions common_of(const Options& o) {
  return {.weight_decay = o.weight_decay,
          .clipnorm = o.clipnorm,
          .clipvalue = o.clipvalue,
          .global_clipnorm = o.global_clipnorm,
          .use_ema = o.use_ema,
          .ema_momentum = o.ema_momentum,
          .ema_overwrite_frequency = o.ema_overwrite_frequency,
          .loss_scale_factor = o.loss_scale_factor,
          .gradient_accumulation_steps = o.gradient_accumulation_steps,
          .name = o.name};
}

struct Description;  // keras/config/fields.h

class OptimizerBase {
 public:
  // Throws errors::InvalidArgument for options that do not fit.
  OptimizerBase(std::string name, LearningRate learning_rate,
                OptimizerOptions options = {});
  virtual ~OptimizerBase();
  OptimizerBase(const OptimizerBase&) = delete;
  OptimizerBase& operator=(const OptimizerBase&) = delete;

  // In a replica of strategy.run() gradients are summed over replicas first.
  void apply_gradients(const Tensors& grads,
                       const std::vector<Variable>& variables, Site site);
  virtual Tensor scale_loss(const Tensor& loss, Site site);

  const std::string& name() const { return name_; }
  const OptimizerOptions& options() const { return options_; }
  virtual const LearningRateSchedule& schedule() const { return schedule_; }
  virtual Variable learning_rate();
  virtual Variable iterations();
  virtual std::vector<Variable> variables();
  virtual void exclude_from_weight_decay(const std::vector<Variable>& variables,
                                         const std::vector<std::string>& names);
  // The averages of use_ema, one per variable; empty where there is none.
  virtual std::vector<Variable> averages(
      const std::vector<Variable>& variables);
  // What steps keep of each variable: slots, the sum of its gradients, its
  // average; nothing before it is trained.
  virtual std::vector<std::vector<Variable>> slots_of(
      const std::vector<Variable>& variables);

  // For checkpoints (tracked.cc): names and owners of these, and slots of
  // variables that have not been trained yet. Counters are made where the first
  // of `near` is.
  std::vector<train::NamedVariable> named_variables(
      const std::vector<Variable>& near = {});
  void make_slots(const std::vector<Variable>& variables);
  // How it was made, for configs; null: by a class of the user's.
  std::shared_ptr<const Description> description;

  // What apply_gradients() does when all is checked: one step, perhaps of
  // several that are accumulated.
  virtual void update_all(const Tensors& grads,
                          const std::vector<Variable>& variables, Site site);
  // Makes slots and counters.
  virtual void make_all(const Tensors& grads,
                        const std::vector<Variable>& variables, Site site);

 protected:
  using Slots = std::vector<Variable>;

  // Names of the variables that each trained variable gets, full of
  // initial_slot_value(i) at first.
  virtual std::vector<const char*> slot_names() const { return {}; }
  virtual double initial_slot_value(size_t) const { return 0; }
  // The shape of slot `i` of a variable of this shape.
  virtual Shape slot_shape(size_t, const Shape& shape) const { return shape; }
  // Makes further counters of `dtype`, outside the trace.
  virtual std::vector<Variable> make_counters(DType) { return {}; }
  // Moves the counters on, once per step.
  virtual void advance(Site) {}
  // Computes what the updates of variables of `dtype` share.
  virtual void begin(DType dtype, Site site) = 0;
  virtual void update(const Variable& v, const Slots& slots,
                      const Tensor& grad) = 0;
  // True when update() decays weights itself, where decays() says so.
  virtual bool decays_itself() const { return false; }
  bool decays(const Variable& v) const;

  // A counter full of `value`; in make_counters().
  Variable counter(const char* name, double value, DType dtype) const;
  // Multiplies a counter by `beta`; returns beta to the number of this step
  // when it began with 1.
  static Tensor next_power(const Variable& power, double beta, Site site);
  // The rate as a scalar of `dtype`.
  Tensor rate(DType dtype, Site site) const;
  static Tensor as(const Tensor& t, DType dtype, Site site);
  static Tensor scalar(double value, DType dtype);
  // Throws errors::InvalidArgument unless low <= value <= high.
  void check_option(const char* what, double value, double low,
                    double high) const;
  // 0 or more, and finite.
  void check_option(const char* what, double value) const;

 private:
  struct Trained {
    Variable variable;  // keeps the key's address taken
    Slots slots;
    Variable accumulator, average;
  };
  void check(const Tensors& grads,
             const std::vector<Variable>& variables) const;
  void make(const Variable* first);
  Trained& trained(const Variable& v);
  Variable make_slot(const Variable& like, const char* name, const Shape& shape,
                     double value);
  void accumulate(const Tensors& grads, const std::vector<Variable>& variables,
                  Site site);
  Tensors clipped(const Tensors& grads, Site site) const;
  void decay(const Tensors& grads, const std::vector<Variable>& variables,
             Site site);
  // Clips, decays and updates.
  void step(const Tensors& grads, const std::vector<Variable>& variables,
            Site site);
  void average(const Tensors& grads, const std::vector<Variable>& variables,
               const Tensor& iterations, Site site);

  const std::string name_;
  const double initial_rate_;
  const LearningRateSchedule schedule_;
  const OptimizerOptions options_;
  std::mutex mutex_;
  Variable learning_rate_, iterations_;
  Tensor rate_;  // of the step being made
  std::vector<Variable> counters_;
  std::unordered_map<const TensorImpl*, Trained> trained_;
  std::vector<Variable> all_;  // in the order they were made
  std::vector<Variable> undecayed_;
  std::vector<std::string> undecayed_names_;
  std::atomic<int> eager_steps_{0};  // as far as lint_replicas() looks
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZERS_OPTIMIZER_BASE_H_
