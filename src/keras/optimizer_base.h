// What optimizers share: slots, the rate, the step counter.

#ifndef BERTH_KERAS_OPTIMIZER_BASE_H_
#define BERTH_KERAS_OPTIMIZER_BASE_H_

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::keras {

struct Description;  // keras/fields.h

class OptimizerBase {
 public:
  OptimizerBase(std::string name, double learning_rate);
  virtual ~OptimizerBase();
  OptimizerBase(const OptimizerBase&) = delete;
  OptimizerBase& operator=(const OptimizerBase&) = delete;

  // In a replica of strategy.run() gradients are summed over replicas first.
  void apply_gradients(const Tensors& grads,
                       const std::vector<Variable>& variables, Site site);

  const std::string& name() const { return name_; }
  Variable learning_rate();
  Variable iterations();
  std::vector<Variable> variables();
  // How it was made, for configs; null: by a class of the user's.
  std::shared_ptr<const Description> description;

 protected:
  using Slots = std::vector<Variable>;

  // Names of the variables that each trained variable gets, full of
  // initial_slot_value() at first.
  virtual std::vector<const char*> slot_names() const { return {}; }
  virtual double initial_slot_value() const { return 0; }
  // Makes further counters of `dtype`, outside the trace.
  virtual std::vector<Variable> make_counters(DType) { return {}; }
  // Moves the counters on, once per step.
  virtual void advance(Site) {}
  // Computes what the updates of variables of `dtype` share.
  virtual void begin(DType dtype, Site site) = 0;
  virtual void update(const Variable& v, const Slots& slots,
                      const Tensor& grad) = 0;

  // The rate as a scalar of `dtype`.
  Tensor rate(DType dtype, Site site) const;
  static Tensor as(const Tensor& t, DType dtype, Site site);
  static Tensor scalar(double value, DType dtype);

 private:
  struct Trained {
    Variable variable;  // keeps the key's address taken
    Slots slots;
  };
  void check(const Tensors& grads,
             const std::vector<Variable>& variables) const;
  void update_all(const Tensors& grads, const std::vector<Variable>& variables,
                  Site site);
  void make(const Variable* first);
  const Slots& slots_of(const Variable& v);

  const std::string name_;
  const double initial_rate_;
  std::mutex mutex_;
  Variable learning_rate_, iterations_;
  std::vector<Variable> counters_;
  std::unordered_map<const TensorImpl*, Trained> trained_;
  std::vector<Variable> all_;        // in the order they were made
  std::atomic<int> eager_steps_{0};  // as far as lint_replicas() looks
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZER_BASE_H_
