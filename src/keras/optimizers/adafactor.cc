// Adafactor.

#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/optimizers/optimizer_config.h"
#include "op/dispatcher.h"

namespace berth::keras::optimizers {

namespace {

// Of [..., r, c] it keeps means over c, [..., r], and over r, [..., c]; of a
// vector all.
class AdafactorBase final : public OptimizerBase {
 public:
  AdafactorBase(LearningRate rate, const AdafactorOptions& options)
      : OptimizerBase("adafactor", std::move(rate), common_of(options)),
        o_(options) {
    check_option("-beta_2_decay", -o_.beta_2_decay);
    check_option("epsilon_1", o_.epsilon_1);
    check_option("epsilon_2", o_.epsilon_2);
    check_option("clip_threshold", o_.clip_threshold);
  }

 private:
  std::vector<const char*> slot_names() const override {
    return {"row", "column", "velocity"};
  }
  Shape slot_shape(size_t slot, const Shape& s) const override {
    std::vector<int64_t> dims(s.begin(), s.end());
    if (s.rank() < 2) return slot == 2 ? s : Shape{};
    if (slot == 2) return {};
    dims.erase(slot == 0 ? dims.end() - 1 : dims.end() - 2);
    return Shape(dims);
  }

  std::vector<Variable> make_counters(DType dtype) override {
    steps_ = counter("steps", 0, dtype);
    return {steps_};
  }
  void advance(Site site) override {
    steps_.assign_add(scalar(1, steps_.dtype()), site);
    now_ = steps_.value(site);
  }
  void begin(DType dtype, Site site) override {
    const Tensor t = as(now_, dtype, site);
    // As Keras does it, relative_step or not.
    rate_ = math::minimum(rate(dtype, site), 1.0 / math::sqrt(t, site), site);
    beta_2_ = 1.0 - math::pow(t, scalar(o_.beta_2_decay, dtype), site);
  }

  static Tensor mean(const Tensor& x, int64_t axis, bool keepdims = false) {
    return math::reduce_mean(x, {.axis = {{axis}}, .keepdims = keepdims},
                             t_state.site);
  }
  static Tensor rms(const Tensor& x) {
    return math::sqrt(math::reduce_mean(x * x, {}, t_state.site), t_state.site);
  }
  Tensor moved(const Variable& slot, const Tensor& x) const {
    const Tensor next =
        beta_2_ * slot.value(t_state.site) + (1.0 - beta_2_) * x;
    slot.assign(next, t_state.site);
    return next;
  }

  void update(const Variable& v, const Slots& slots,
              const Tensor& grad) override {
    const Site site = t_state.site;
    const Tensor square = grad * grad + o_.epsilon_1;
    Tensor second;
    if (v.shape().rank() < 2) {
      second = moved(slots[2], square);
    } else {
      const Tensor rows = moved(slots[0], mean(square, -1));
      const Tensor columns = moved(slots[1], mean(square, -2));
      second = expand_dims(rows / mean(rows, -1, true), -1, site) *
               expand_dims(columns, -2, site);
    }
    const Tensor step = grad / math::sqrt(second, site);
    const Tensor scale = math::maximum(scalar(1, v.dtype()),
                                       rms(step) / o_.clip_threshold, site);
    const Tensor now = v.value(site);
    const Tensor alpha =
        math::maximum(scalar(o_.epsilon_2, v.dtype()), rms(now), site) * rate_;
    v.assign_sub(step * (alpha / scale), site);
  }

  const AdafactorOptions o_;
  Variable steps_;
  Tensor now_, rate_, beta_2_;  // of the step being made
};

}  // namespace

Adafactor::Adafactor(LearningRate learning_rate, AdafactorOptions options)
    : Optimizer(make_optimizer<Adafactor, AdafactorBase>(
          "Adafactor", learning_rate, options)) {}

void add_adafactor_classes(Classes& c) {
  c.optimizers["Adafactor"] =
      &made_of<Optimizer, OptimizerArgs<Adafactor, AdafactorOptions>>;
}

}  // namespace berth::keras::optimizers
