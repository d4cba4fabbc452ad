// LossScaleOptimizer: an optimizer around another one.

#include <optional>

#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/optimizers/optimizer_base.h"
#include "op/dispatcher.h"

namespace berth::keras::optimizers {

namespace {

class LossScaleBase final : public OptimizerBase {
 public:
  LossScaleBase(Optimizer inner, const LossScaleOptions& o)
      : OptimizerBase("loss_scale_optimizer", LearningRate(0),
                      {.name = o.name}),
        inner_(inner.base()),
        o_(o) {
    check_option("initial_scale", o_.initial_scale);
    check_option("dynamic_growth_steps",
                 static_cast<double>(o_.dynamic_growth_steps));
  }

  const LearningRateSchedule& schedule() const override {
    return inner_->schedule();
  }
  Variable learning_rate() override { return inner_->learning_rate(); }
  // As in Keras: steps that were skipped do not count.
  Variable iterations() override { return inner_->iterations(); }
  std::vector<Variable> variables() override {
    std::vector<Variable> list = OptimizerBase::variables();
    for (const Variable& v : inner_->variables()) list.push_back(v);
    return list;
  }
  void exclude_from_weight_decay(
      const std::vector<Variable>& variables,
      const std::vector<std::string>& names) override {
    inner_->exclude_from_weight_decay(variables, names);
  }
  std::vector<Variable> averages(
      const std::vector<Variable>& variables) override {
    return inner_->averages(variables);
  }
  std::vector<std::vector<Variable>> slots_of(
      const std::vector<Variable>& variables) override {
    return inner_->slots_of(variables);
  }
  const LossScaleOptions& scale_options() const { return o_; }

  Tensor scale_loss(const Tensor& loss, Site site) override {
    OptimizerBase::variables();  // makes the scale
    set_site(site);
    return loss * as(scale_.value(site), loss.dtype(), site);
  }

  void make_all(const Tensors& grads, const std::vector<Variable>& variables,
                Site site) override {
    OptimizerBase::make_all(grads, variables, site);
    inner_->make_all(grads, variables, site);
  }

  void update_all(const Tensors& grads, const std::vector<Variable>& variables,
                  Site site) override {
    make_all(grads, variables, site);
    const Tensor scale = scale_.value(site);
    Tensor finite;
    for (const Tensor& g : grads) {
      if (!g.defined()) continue;
      const Tensor one = math::reduce_all(math::is_finite(g, site), {}, site);
      finite = finite.defined() ? math::logical_and(finite, one, site) : one;
    }
    cond(
        finite,
        [&] {
          Tensors unscaled(grads.size());
          for (size_t i = 0; i < grads.size(); ++i) {
            if (!grads[i].defined()) continue;
            set_site(site);
            unscaled[i] = grads[i] / as(scale, grads[i].dtype(), site);
          }
          inner_->update_all(unscaled, variables, site);
          const Tensor good = good_steps_.value(site);
          const Tensor grows = math::greater_equal(
              good, constant(o_.dynamic_growth_steps - 1), site);
          scale_.assign(where(grows, scale * 2.0, scale, site), site);
          good_steps_.assign(where(grows, constant(int64_t{0}),
                                   good + constant(int64_t{1}), site),
                             site);
        },
        [&] {
          scale_.assign(scale / 2.0, site);
          good_steps_.assign(constant(int64_t{0}), site);
        },
        site);
  }

 private:
  std::vector<Variable> make_counters(DType) override {
    scale_ = counter("dynamic_scale", o_.initial_scale, float32);
    good_steps_ = Variable(
        constant(int64_t{0}),
        {.name = name() + "/step_counter", .trainable = false}, t_state.site);
    return {scale_, good_steps_};
  }
  void begin(DType, Site) override {}
  void update(const Variable&, const Slots&, const Tensor&) override {}

  const std::shared_ptr<OptimizerBase> inner_;
  const LossScaleOptions o_;
  Variable scale_, good_steps_;
};

}  // namespace

namespace {

struct LossScaleArgs {
  std::optional<Optimizer> inner;
  LossScaleOptions o;
  void fields(Fields& f) {
    if (!f.reading()) {
      f.put("inner_optimizer", serialize(*inner));
    } else {
      const auto c = f.get("inner_optimizer");
      if (!c) f.fail("inner_optimizer", nullptr, "an optimizer");
      inner = deserialize(*c);
    }
    f("initial_scale", o.initial_scale);
    f("dynamic_growth_steps", o.dynamic_growth_steps);
  }
  Optimizer make() const { return LossScaleOptimizer(*inner, o); }
};

}  // namespace

LossScaleOptimizer::LossScaleOptimizer(Optimizer inner_optimizer,
                                       LossScaleOptions options)
    : Optimizer(std::make_shared<LossScaleBase>(inner_optimizer, options)) {
  base()->description = description(
      "LossScaleOptimizer", LossScaleArgs{std::move(inner_optimizer), options});
}

void add_loss_scale_classes(Classes& c) {
  c.optimizers["LossScaleOptimizer"] = &made_of<Optimizer, LossScaleArgs>;
}

}  // namespace berth::keras::optimizers
