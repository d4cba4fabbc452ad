// Activations with parameters, as layers.

#include <fmt/format.h>

#include "berth/keras/element_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

// Computes fn(x) of one input.
class ElementBase final : public LayerBase {
 public:
  using Fn = std::function<Tensor(const Tensor&, Site)>;
  ElementBase(const char* type, const std::string& name, Fn fn, Site site)
      : LayerBase(type, name, site), fn_(std::move(fn)) {}
  Tensors call(const Tensors& x, bool) override {
    return {fn_(one_input(state(), x), site())};
  }

 private:
  const Fn fn_;
};

Layer element(const char* type, const std::string& name, ElementBase::Fn fn,
              Site site) {
  return make_layer<ElementBase>(type, name, std::move(fn), site);
}

void check_number(const Layer& layer, const char* what, double v, bool good) {
  if (good) return;
  fail_in(layer.base()->state(),
          fmt::format("{}: {} is {}; expected a finite number, 0 or more",
                      layer.base()->state().type, what, v));
}
bool at_least_0(double v) { return v >= 0 && v < 1e300; }

// slope * x where x is negative.
Tensor rectified(const Tensor& x, double slope, Site site) {
  return slope == 0 ? nn::relu(x, site) : nn::leaky_relu(x, slope, site);
}

class PReLUBase final : public LayerBase {
 public:
  PReLUBase(PReLUOptions o, Site site)
      : LayerBase("PReLU", o.name, site), o_(std::move(o)) {}

  void build(const std::vector<Shape>& inputs) override {
    Shape shape;
    for (int i = 1; i < inputs[0].rank(); ++i) {
      shape.insert(i - 1, inputs[0][i]);
    }
    for (int64_t axis : o_.shared_axes) {
      const int i = axis < 0 ? static_cast<int>(axis) + inputs[0].rank()
                             : static_cast<int>(axis);
      if (i < 1 || i >= inputs[0].rank()) {
        fail(
            fmt::format("PReLU: a shared axis is {}, the input {}; expected "
                        "one of its axes but the batch",
                        axis, inputs[0].str()));
      }
      shape[i - 1] = 1;
    }
    alpha_ = add_weight("alpha", shape, o_.alpha_initializer,
                        {.regularizer = o_.alpha_regularizer,
                         .constraint = o_.alpha_constraint});
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    return {nn::relu(x, site()) - nn::relu(-x, site()) * alpha_.value(site())};
  }

 private:
  const PReLUOptions o_;
  Variable alpha_;
};

struct ReLUArgs {
  ReLUOptions o;
  void fields(Fields& f) {
    f("max_value", o.max_value);
    f("negative_slope", o.negative_slope);
    f("threshold", o.threshold);
    f("name", o.name);
  }
  Layer make(Site site) const { return ReLU(o, site); }
};
struct LeakyReLUArgs {
  double negative_slope = 0.3;
  NameOptions o;
  void fields(Fields& f) {
    f("negative_slope", negative_slope);
    f("name", o.name);
  }
  Layer make(Site site) const { return LeakyReLU(negative_slope, o, site); }
};
struct ELUArgs {
  double alpha = 1;
  NameOptions o;
  void fields(Fields& f) {
    f("alpha", alpha);
    f("name", o.name);
  }
  Layer make(Site site) const { return ELU(alpha, o, site); }
};
struct PReLUArgs {
  PReLUOptions o;
  void fields(Fields& f) {
    f("alpha_initializer", o.alpha_initializer);
    f("alpha_regularizer", o.alpha_regularizer);
    f("alpha_constraint", o.alpha_constraint);
    if (f.reading() || !o.shared_axes.empty()) f("shared_axes", o.shared_axes);
    f("name", o.name);
  }
  Layer make(Site site) const { return PReLU(o, site); }
};
struct SoftmaxArgs {
  SoftmaxOptions o;
  void fields(Fields& f) {
    axis_field(f, *o.axis);
    f("name", o.name);
  }
  Layer make(Site site) const { return Softmax(o, site); }
};

}  // namespace

ReLU::ReLU(ReLUOptions o, Site site)
    : Layer(element(
          "ReLU", o.name,
          [o](const Tensor& x, Site s) {
            const Tensor y =
                o.threshold == 0
                    ? rectified(x, o.negative_slope, s)
                    : where(x >= scalar_like(x, o.threshold), x,
                            (x - o.threshold) * o.negative_slope, s);
            return o.max_value
                       ? math::minimum(y, scalar_like(y, *o.max_value), s)
                       : y;
          },
          site)) {
  check_number(*this, "negative_slope", o.negative_slope,
               at_least_0(o.negative_slope));
  check_number(*this, "threshold", o.threshold, at_least_0(o.threshold));
  const double max = o.max_value.value_or(0);
  check_number(*this, "max_value", max, at_least_0(max));
  describe(*this, ReLUArgs{std::move(o)});
}

LeakyReLU::LeakyReLU(double negative_slope, NameOptions o, Site site)
    : Layer(element(
          "LeakyReLU", o.name,
          [negative_slope](const Tensor& x, Site s) {
            return rectified(x, negative_slope, s);
          },
          site)) {
  check_number(*this, "negative_slope", negative_slope,
               at_least_0(negative_slope));
  describe(*this, LeakyReLUArgs{negative_slope, std::move(o)});
}

ELU::ELU(double alpha, NameOptions o, Site site)
    : Layer(element(
          "ELU", o.name,
          [alpha](const Tensor& x, Site s) {
            if (alpha == 1) return nn::elu(x, s);
            const Tensor below = math::minimum(x, scalar_like(x, 0), s);
            return nn::relu(x, s) + (math::exp(below, s) - 1.0) * alpha;
          },
          site)) {
  check_number(*this, "alpha", alpha, at_least_0(alpha));
  describe(*this, ELUArgs{alpha, std::move(o)});
}

PReLU::PReLU(PReLUOptions options, Site site)
    : Layer(make_layer<PReLUBase>(options, site)) {
  describe(*this, PReLUArgs{std::move(options)});
}

Softmax::Softmax(SoftmaxOptions o, Site site)
    : Layer(element(
          "Softmax", o.name,
          [axis = o.axis](const Tensor& x, Site s) {
            if (axis->size() == 1) return nn::softmax(x, axis->front(), s);
            const math::ReduceOptions over{.axis = axis, .keepdims = true};
            const Tensor e = math::exp(x - math::reduce_max(x, over, s), s);
            return e / math::reduce_sum(e, over, s);
          },
          site)) {
  if (!o.axis || o.axis->empty()) {
    fail_in(base()->state(), "Softmax: axis is empty; expected one or several");
  }
  describe(*this, SoftmaxArgs{std::move(o)});
}

void add_rectifier_classes(Classes& c);
void add_rectifier_classes(Classes& c) {
  c.layers["ReLU"] = &layer_of<ReLUArgs>;
  c.layers["LeakyReLU"] = &layer_of<LeakyReLUArgs>;
  c.layers["ELU"] = &layer_of<ELUArgs>;
  c.layers["PReLU"] = &layer_of<PReLUArgs>;
  c.layers["Softmax"] = &layer_of<SoftmaxArgs>;
}

}  // namespace berth::keras
