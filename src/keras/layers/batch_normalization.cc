// BatchNormalization.

#include <algorithm>

#include "berth/keras/layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/axes_last.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"
#include "op/replica_scope.h"

namespace berth::keras {

namespace {

class BatchNormalizationBase final : public LayerBase {
 public:
  BatchNormalizationBase(BatchNormalizationOptions options, Site site)
      : LayerBase("BatchNormalization", options.name, site),
        o_(std::move(options)) {
    state().casts.weights = false;
    if (!(o_.momentum >= 0 && o_.momentum <= 1) || !(o_.epsilon > 0)) {
      fail_in(state(),
              "BatchNormalization: momentum is {}, epsilon {}; "
              "expected 0 <= momentum <= 1, epsilon above 0",
              o_.momentum, o_.epsilon);
    }
    if (o_.statistics_groups < 0) {
      fail_in(state(),
              "BatchNormalization: statistics_groups is {}; expected 0 or more",
              o_.statistics_groups);
    }
  }

  void build(const std::vector<Shape>& inputs) override {
    const AxesLast axis(state(), {o_.axis}, inputs[0].rank());
    channels_ = known_channels(state(), axis.moved(inputs[0]));
    const Shape shape{channels_};
    if (o_.scale) {
      gamma_ = add_weight("gamma", shape, o_.gamma_initializer,
                          {.regularizer = o_.gamma_regularizer,
                           .constraint = o_.gamma_constraint});
    }
    if (o_.center) {
      beta_ = add_weight("beta", shape, o_.beta_initializer,
                         {.regularizer = o_.beta_regularizer,
                          .constraint = o_.beta_constraint});
    }
    constexpr auto kMean = VariableAggregation::kMean;
    mean_ = add_weight("moving_mean", shape, o_.moving_mean_initializer, false,
                       kMean);
    variance_ = add_weight("moving_variance", shape,
                           o_.moving_variance_initializer, false, kMean);
  }

  Tensors call(const Tensors& inputs, bool in_training) override {
    const Tensor& given = one_input(state(), inputs);
    const AxesLast axis(state(), {o_.axis}, given.rank());
    const Tensor x = axis.to(given);
    const bool training = in_training && state().weights.learns.load();
    check_channels(state(), x, channels_);
    const Tensor scale = o_.scale
                             ? gamma_.value(site())
                             : ones({channels_}, weights_dtype_for(x), site());
    const Tensor offset =
        o_.center ? beta_.value(site())
                  : zeros({channels_}, weights_dtype_for(x), site());
    nn::FusedBatchNormOptions options{.epsilon = o_.epsilon,
                                      .is_training = training,
                                      .statistics_groups = groups_of(x)};
    if (!training || is_empty_replica(x)) {
      options.is_training = false;
      options.mean = mean_.value(site());
      options.variance = variance_.value(site());
      if (training) {  // the others write too: together
        move(mean_, options.mean, 0);
        move(variance_, options.variance, 0);
      }
      return {
          axis.from(nn::fused_batch_norm(x, scale, offset, options, site()).y)};
    }
    const nn::FusedBatchNorm r =
        nn::fused_batch_norm(x, scale, offset, options, site());
    const double weight = weight_of_replica();
    move(mean_, r.batch_mean, weight);
    move(variance_,
         r.variance.rank() > 1
             ? math::reduce_mean(r.variance, {.axis = 0}, site())
             : r.variance,
         weight);
    return {axis.from(r.y)};
  }

 private:
  // A replica has its share of the groups. Micro-batches of a pipeline are
  // groups: with one, each would wait for all.
  int64_t groups_of(const Tensor& x) const {
    const StrategyScope* strategy = GlobalStep::strategy_here();
    const int64_t parts = strategy ? strategy->micro_batches() : 1;
    if (o_.statistics_groups <= 1 && parts > 1) {
      return x.shape()[0] > 0 && x.shape()[0] % parts == 0 ? parts : 1;
    }
    const int64_t replicas =
        t_state.replica ? t_state.replica->strategy().num_replicas() : 1;
    return std::max<int64_t>(1, o_.statistics_groups / replicas);
  }
  // No examples have no moments.
  static bool is_empty_replica(const Tensor& x) {
    return t_state.replica != nullptr && x.num_elements() == 0;
  }
  // In the mean over replicas each counts by its examples.
  static double weight_of_replica() {
    const ReplicaScope* r = t_state.replica;
    return r ? r->share() * r->strategy().num_replicas() : 1;
  }

  // average += (value - average) * (1 - momentum), where no gradient flows.
  void move(const Variable& average, const Tensor& value, double weight) const {
    const Tensor delta = math::subtract(average.value(site()),
                                        stop_gradient(value, site()), site());
    average.assign_sub(delta * (weight * (1 - o_.momentum)), site());
  }

  const BatchNormalizationOptions o_;
  int64_t channels_ = 0;
  Variable gamma_, beta_, mean_, variance_;
};

void batch_normalization_fields(Fields& f, BatchNormalizationOptions& o) {
  axis_field(f, o.axis);
  f("momentum", o.momentum);
  f("epsilon", o.epsilon);
  f("center", o.center);
  f("scale", o.scale);
  f("beta_initializer", o.beta_initializer);
  f("gamma_initializer", o.gamma_initializer);
  norm_penalty_fields(f, o);
  f("moving_mean_initializer", o.moving_mean_initializer);
  f("moving_variance_initializer", o.moving_variance_initializer);
  if (f.reading() || o.statistics_groups != 1) {
    f("statistics_groups", o.statistics_groups);
  }
}

}  // namespace

BatchNormalization::BatchNormalization(BatchNormalizationOptions options,
                                       Site site)
    : Layer(described<BatchNormalizationBase, batch_normalization_fields>(
          site, std::move(options))) {}

void add_batch_normalization_classes(Classes& c) {
  c.layers["BatchNormalization"] =
      &layer_of<BatchNormalization, batch_normalization_fields>;
}

}  // namespace berth::keras
