// Layer and group normalisation.

#include <fmt/format.h>

#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "keras/classes.h"
#include "keras/layers/args.h"
#include "keras/layers/layer_util.h"

namespace berth::keras {

namespace {

// What both share: weights per channel, and their checks.
template <class Options>
class NormBase : public LayerBase {
 public:
  NormBase(const char* type, Options options, Site site)
      : LayerBase(type, options.name, site), o_(std::move(options)) {
    state().casts_weights = false;
    if (!(o_.epsilon > 0)) {
      fail(fmt::format("{}: epsilon is {}; expected more than 0", type,
                       o_.epsilon));
    }
  }

  void build(const std::vector<Shape>& inputs) override {
    channels_ = known_channels(state(), inputs[0]);
    if (o_.scale) {
      gamma_ = add_weight("gamma", {channels_}, o_.gamma_initializer,
                          {.regularizer = o_.gamma_regularizer,
                           .constraint = o_.gamma_constraint});
    }
    if (o_.center) {
      beta_ = add_weight("beta", {channels_}, o_.beta_initializer,
                         {.regularizer = o_.beta_regularizer,
                          .constraint = o_.beta_constraint});
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    check_channels(state(), x, channels_);
    const Tensor scale = o_.scale
                             ? gamma_.value(site())
                             : ones({channels_}, weights_dtype_for(x), site());
    const Tensor offset =
        o_.center ? beta_.value(site())
                  : zeros({channels_}, weights_dtype_for(x), site());
    return {norm(x, scale, offset)};
  }

 protected:
  virtual Tensor norm(const Tensor& x, const Tensor& scale,
                      const Tensor& offset) const = 0;
  const Options o_;
  int64_t channels_ = 0;

 private:
  Variable gamma_, beta_;
};

class LayerNormalizationBase final
    : public NormBase<LayerNormalizationOptions> {
 public:
  LayerNormalizationBase(LayerNormalizationOptions options, Site site)
      : NormBase("LayerNormalization", std::move(options), site) {}

 protected:
  Tensor norm(const Tensor& x, const Tensor& scale,
              const Tensor& offset) const override {
    return nn::layer_norm(x, scale, offset, o_.epsilon, site());
  }
};

class GroupNormalizationBase final
    : public NormBase<GroupNormalizationOptions> {
 public:
  GroupNormalizationBase(GroupNormalizationOptions options, Site site)
      : NormBase("GroupNormalization", std::move(options), site) {
    if (o_.groups != -1) check_positive(state(), "groups", o_.groups);
  }

 protected:
  Tensor norm(const Tensor& x, const Tensor& scale,
              const Tensor& offset) const override {
    const int64_t groups = o_.groups < 0 ? channels_ : o_.groups;
    return nn::group_norm(x, groups, scale, offset, o_.epsilon, site());
  }
};

template <class Options>
void norm_fields(Fields& f, Options& o) {
  f.fixed("axis", -1);
  f("epsilon", o.epsilon);
  f("center", o.center);
  f("scale", o.scale);
  f("beta_initializer", o.beta_initializer);
  f("gamma_initializer", o.gamma_initializer);
  norm_penalty_fields(f, o);
  f("name", o.name);
}
struct LayerNormalizationArgs {
  LayerNormalizationOptions o;
  void fields(Fields& f) { norm_fields(f, o); }
  Layer make(Site site) const { return LayerNormalization(o, site); }
};
struct GroupNormalizationArgs {
  GroupNormalizationOptions o;
  void fields(Fields& f) {
    f("groups", o.groups);
    norm_fields(f, o);
  }
  Layer make(Site site) const { return GroupNormalization(o, site); }
};

}  // namespace

LayerNormalization::LayerNormalization(LayerNormalizationOptions options,
                                       Site site)
    : Layer(std::make_shared<LayerNormalizationBase>(options, site)) {
  describe(*this, LayerNormalizationArgs{std::move(options)});
}
GroupNormalization::GroupNormalization(GroupNormalizationOptions options,
                                       Site site)
    : Layer(std::make_shared<GroupNormalizationBase>(options, site)) {
  describe(*this, GroupNormalizationArgs{std::move(options)});
}

void add_normalization_classes(Classes& c);
void add_normalization_classes(Classes& c) {
  c.layers["LayerNormalization"] = &layer_of<LayerNormalizationArgs>;
  c.layers["GroupNormalization"] = &layer_of<GroupNormalizationArgs>;
}

}  // namespace berth::keras
