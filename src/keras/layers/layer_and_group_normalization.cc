// Layer and group normalisation.

#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/axes_last.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

// What both share: weights per channel, and their checks.
template <class Options>
class NormBase : public LayerBase {
 public:
  NormBase(const char* type, Options options, Site site)
      : LayerBase(type, options.name, site), o_(std::move(options)) {
    state().casts.weights = false;
    if (!(o_.epsilon > 0)) {
      fail_in(state(), "{}: epsilon is {}; expected more than 0", type,
              o_.epsilon);
    }
  }

  void build(const std::vector<Shape>& inputs) override {
    const AxesLast axes(state(), axes_of(o_), inputs[0].rank());
    lengths_ = axes.lengths(inputs[0]);
    for (int i = 0; i < lengths_.rank(); ++i) {
      channels_ *= known_channels(state(), Shape{lengths_[i]});
    }
    if (o_.scale) {
      gamma_ = add_weight("gamma", lengths_, o_.gamma_initializer,
                          {.regularizer = o_.gamma_regularizer,
                           .constraint = o_.gamma_constraint});
    }
    if (o_.center) {
      beta_ = add_weight("beta", lengths_, o_.beta_initializer,
                         {.regularizer = o_.beta_regularizer,
                          .constraint = o_.beta_constraint});
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& given = one_input(state(), inputs);
    const AxesLast axes(state(), axes_of(o_), given.rank());
    Tensor x = axes.to(given);
    const Shape apart = x.shape();
    const bool several = lengths_.rank() > 1;
    if (several) x = reshape(x, joined(apart), site());
    check_channels(state(), x, channels_);
    const auto flat = [&](const Variable& v) {
      const Tensor value = v.value(site());
      return several ? reshape(value, {channels_}, site()) : value;
    };
    const Tensor scale = o_.scale
                             ? flat(gamma_)
                             : ones({channels_}, weights_dtype_for(x), site());
    const Tensor offset =
        o_.center ? flat(beta_)
                  : zeros({channels_}, weights_dtype_for(x), site());
    Tensor y = norm(x, scale, offset);
    if (several) y = reshape(y, open_shape(apart), site());
    return {axes.from(y)};
  }

 protected:
  virtual Tensor norm(const Tensor& x, const Tensor& scale,
                      const Tensor& offset) const = 0;
  const Options o_;
  int64_t channels_ = 1;

 private:
  static std::vector<int64_t> axes_of(const LayerNormalizationOptions& o) {
    return o.axis;
  }
  static std::vector<int64_t> axes_of(const GroupNormalizationOptions& o) {
    return {o.axis};
  }
  // The normalised axes of `x`, which are the last ones, as one.
  Shape joined(const Shape& x) const {
    Shape s;
    for (int i = 0; i < x.rank() - lengths_.rank(); ++i) s.push_back(x[i]);
    s.push_back(channels_);
    return open_shape(s);
  }
  static Shape open_shape(Shape s) {
    for (int i = 0; i < s.rank(); ++i) {
      if (s[i] < 0) s[i] = kUnknownDim;
    }
    return s;
  }

  Shape lengths_;
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
  axis_field(f, o.axis);
  f("epsilon", o.epsilon);
  f("center", o.center);
  f("scale", o.scale);
  f("beta_initializer", o.beta_initializer);
  f("gamma_initializer", o.gamma_initializer);
  norm_penalty_fields(f, o);
}
void group_normalization_fields(Fields& f, GroupNormalizationOptions& o) {
  f("groups", o.groups);
  norm_fields(f, o);
}

}  // namespace

LayerNormalization::LayerNormalization(LayerNormalizationOptions options,
                                       Site site)
    : Layer(described<LayerNormalizationBase,
                      norm_fields<LayerNormalizationOptions>>(
          site, std::move(options))) {}
GroupNormalization::GroupNormalization(GroupNormalizationOptions options,
                                       Site site)
    : Layer(described<GroupNormalizationBase, group_normalization_fields>(
          site, std::move(options))) {}

void add_normalization_classes(Classes& c) {
  c.layers["LayerNormalization"] =
      &layer_of<LayerNormalization, norm_fields<LayerNormalizationOptions>>;
  c.layers["GroupNormalization"] =
      &layer_of<GroupNormalization, group_normalization_fields>;
}

}  // namespace berth::keras
