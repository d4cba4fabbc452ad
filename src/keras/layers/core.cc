// Functions as layers, and layers that move axes or scale.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/core_layers.h"
#include "berth/keras/element_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/layers/axes_last.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class LambdaBase final : public LayerBase {
 public:
  LambdaBase(Lambda::ListFn fn, const NameOptions& o, Site site)
      : LayerBase("Lambda", o.name, site), fn_(std::move(fn)) {
    if (!fn_) fail("Lambda: got an empty function; expected one to call");
  }
  Tensors call(const Tensors& x, bool) override { return fn_(x); }

 private:
  const Lambda::ListFn fn_;
};

// Makes a function of a list from one of a single tensor.
Lambda::ListFn listed(Lambda::Fn fn, Site site) {
  if (!fn) return {};
  return [fn = std::move(fn), site](const Tensors& x) -> Tensors {
    if (x.size() != 1) {
      throw errors::InvalidArgument(fmt::format(
          "Lambda: its function takes one tensor, got {}{}; expected a "
          "function of Tensors",
          x.size(), where_text(nullptr, site)));
    }
    return {fn(x[0])};
  };
}

class IdentityBase final : public LayerBase {
 public:
  IdentityBase(const NameOptions& o, Site site)
      : LayerBase("Identity", o.name, site) {}
  Tensors call(const Tensors& x, bool) override { return x; }
};

class PermuteBase final : public LayerBase {
 public:
  PermuteBase(std::vector<int64_t> dims, const NameOptions& o, Site site)
      : LayerBase("Permute", o.name, site), dims_(std::move(dims)) {
    std::vector<int64_t> sorted = dims_;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] == static_cast<int64_t>(i) + 1) continue;
      fail(fmt::format("Permute: dims are [{}]; expected each of 1 to {} once",
                       fmt::join(dims_, ", "), dims_.size()));
    }
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (x.rank() != static_cast<int>(dims_.size()) + 1) {
      fail(
          fmt::format("Permute: the input is {}; expected {} axes behind the "
                      "batch",
                      x.shape().str(), dims_.size()));
    }
    std::vector<int64_t> perm{0};
    perm.insert(perm.end(), dims_.begin(), dims_.end());
    return {transpose(x, perm, site())};
  }

 private:
  const std::vector<int64_t> dims_;
};

class RepeatVectorBase final : public LayerBase {
 public:
  RepeatVectorBase(int64_t times, const NameOptions& o, Site site)
      : LayerBase("RepeatVector", o.name, site), times_(times) {
    check_positive(state(), "n", times_);
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = input_of_rank(state(), inputs, 2, "[batch, channels]");
    return {tile(expand_dims(x, 1, site()), {1, times_, 1}, site())};
  }

 private:
  const int64_t times_;
};

class UnitNormalizationBase final : public LayerBase {
 public:
  UnitNormalizationBase(std::vector<int64_t> axis, const NameOptions& o,
                        Site site)
      : LayerBase("UnitNormalization", o.name, site), axis_(std::move(axis)) {
    if (axis_.empty()) fail("UnitNormalization: expected at least one axis");
  }
  Tensors call(const Tensors& x, bool) override {
    return {math::l2_normalize(one_input(state(), x), axis_, 1e-24, site())};
  }

 private:
  const std::vector<int64_t> axis_;
};

class RMSNormalizationBase final : public LayerBase {
 public:
  RMSNormalizationBase(const RMSNormalizationOptions& o, Site site)
      : LayerBase("RMSNormalization", o.name, site),
        epsilon_(o.epsilon),
        axis_(o.axis) {
    state().casts_weights = false;
    if (!(epsilon_ > 0)) {
      fail(fmt::format("RMSNormalization: epsilon is {}; expected more than 0",
                       epsilon_));
    }
  }
  void build(const std::vector<Shape>& inputs) override {
    const AxesLast axis(state(), {axis_}, inputs[0].rank());
    scale_ = add_weight(
        "scale", {known_channels(state(), axis.moved(inputs[0]))}, "ones");
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    const AxesLast axis(state(), {axis_}, x.rank());
    const Tensor moved = axis.to(x);
    check_channels(state(), moved, scale_.shape()[0]);
    return {
        axis.from(nn::rms_norm(moved, scale_.value(site()), epsilon_, site()))};
  }

 private:
  const double epsilon_;
  const int64_t axis_;
  Variable scale_;
};

class ActivityRegularizationBase final : public LayerBase {
 public:
  ActivityRegularizationBase(const ActivityRegularizationOptions& o, Site site)
      : LayerBase("ActivityRegularization", o.name, site) {
    set_activity_regularizer(regularizers::L1L2(o.l1, o.l2));
  }
  Tensors call(const Tensors& x, bool) override { return x; }
};

template <class T>
struct NamedArgs {
  NameOptions o;
  void fields(Fields& f) { f("name", o.name); }
  Layer make(Site site) const { return T(o, site); }
};
struct PermuteArgs {
  std::vector<int64_t> dims;
  NameOptions o;
  void fields(Fields& f) {
    f.must("dims", dims);
    f("name", o.name);
  }
  Layer make(Site site) const { return Permute(dims, o, site); }
};
struct RepeatVectorArgs {
  int64_t n = 1;
  NameOptions o;
  void fields(Fields& f) {
    f.must("n", n);
    f("name", o.name);
  }
  Layer make(Site site) const { return RepeatVector(n, o, site); }
};
struct UnitNormalizationArgs {
  std::vector<int64_t> axis = {-1};
  NameOptions o;
  void fields(Fields& f) {
    axis_field(f, axis);
    f("name", o.name);
  }
  Layer make(Site site) const { return UnitNormalization(axis, o, site); }
};
struct RMSNormalizationArgs {
  RMSNormalizationOptions o;
  void fields(Fields& f) {
    axis_field(f, o.axis);
    f("epsilon", o.epsilon);
    f("name", o.name);
  }
  Layer make(Site site) const { return RMSNormalization(o, site); }
};
struct ActivityRegularizationArgs {
  ActivityRegularizationOptions o;
  void fields(Fields& f) {
    f("l1", o.l1);
    f("l2", o.l2);
    f("name", o.name);
  }
  Layer make(Site site) const { return ActivityRegularization(o, site); }
};

}  // namespace

Lambda::Lambda(Fn fn, NameOptions o, Site site)
    : Layer(make_layer<LambdaBase>(listed(std::move(fn), site), o, site)) {
  set_own_policy(*this, o);
}
Lambda::Lambda(ListFn fn, NameOptions o, Site site)
    : Layer(make_layer<LambdaBase>(std::move(fn), o, site)) {
  set_own_policy(*this, o);
}
Identity::Identity(NameOptions o, Site site)
    : Layer(make_layer<IdentityBase>(o, site)) {
  describe(*this, NamedArgs<Identity>{std::move(o)});
}
Permute::Permute(std::vector<int64_t> dims, NameOptions o, Site site)
    : Layer(make_layer<PermuteBase>(dims, o, site)) {
  describe(*this, PermuteArgs{std::move(dims), std::move(o)});
}
RepeatVector::RepeatVector(int64_t times, NameOptions o, Site site)
    : Layer(make_layer<RepeatVectorBase>(times, o, site)) {
  describe(*this, RepeatVectorArgs{times, std::move(o)});
}
UnitNormalization::UnitNormalization(std::vector<int64_t> axis, NameOptions o,
                                     Site site)
    : Layer(make_layer<UnitNormalizationBase>(axis, o, site)) {
  describe(*this, UnitNormalizationArgs{std::move(axis), std::move(o)});
}
RMSNormalization::RMSNormalization(RMSNormalizationOptions o, Site site)
    : Layer(make_layer<RMSNormalizationBase>(o, site)) {
  describe(*this, RMSNormalizationArgs{std::move(o)});
}
ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions o,
                                               Site site)
    : Layer(make_layer<ActivityRegularizationBase>(o, site)) {
  describe(*this, ActivityRegularizationArgs{std::move(o)});
}

void add_core_classes(Classes& c);
void add_core_classes(Classes& c) {
  c.layers["Identity"] = &layer_of<NamedArgs<Identity>>;
  c.layers["Permute"] = &layer_of<PermuteArgs>;
  c.layers["RepeatVector"] = &layer_of<RepeatVectorArgs>;
  c.layers["UnitNormalization"] = &layer_of<UnitNormalizationArgs>;
  c.layers["RMSNormalization"] = &layer_of<RMSNormalizationArgs>;
  c.layers["ActivityRegularization"] = &layer_of<ActivityRegularizationArgs>;
}

}  // namespace berth::keras
