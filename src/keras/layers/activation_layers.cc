// Activations with parameters, as layers.

#include "berth/keras/activations.h"
#include "berth/keras/element_layers.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

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
          "{}: {} is {}; expected a finite number, 0 or more",
          layer.base()->state().type, what, v);
}
bool at_least_0(double v) { return v >= 0 && v < 1e300; }

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
        fail_in(state(),
                "PReLU: a shared axis is {}, the input {}; expected "
                "one of its axes but the batch",
                axis, inputs[0].str());
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

void relu_fields(Fields& f, ReLUOptions& o) {
  f("max_value", o.max_value);
  f("negative_slope", o.negative_slope);
  f("threshold", o.threshold);
}
void leaky_relu_fields(Fields& f, double& negative_slope, NameOptions&) {
  if (f.reading()) negative_slope = 0.3;
  f("negative_slope", negative_slope);
}
void elu_fields(Fields& f, double& alpha, NameOptions&) {
  if (f.reading()) alpha = 1;
  f("alpha", alpha);
}
void prelu_fields(Fields& f, PReLUOptions& o) {
  f("alpha_initializer", o.alpha_initializer);
  f("alpha_regularizer", o.alpha_regularizer);
  f("alpha_constraint", o.alpha_constraint);
  if (f.reading() || !o.shared_axes.empty()) f("shared_axes", o.shared_axes);
}
void softmax_fields(Fields& f, SoftmaxOptions& o) { axis_field(f, *o.axis); }

}  // namespace

ReLU::ReLU(ReLUOptions o, Site site)
    : Layer(element(
          "ReLU", o.name,
          [how = activations::ReluOptions{.negative_slope = o.negative_slope,
                                          .max_value = o.max_value,
                                          .threshold = o.threshold}](
              const Tensor& x, Site s) { return activations::relu(x, how, s); },
          site)) {
  check_number(*this, "negative_slope", o.negative_slope,
               at_least_0(o.negative_slope));
  check_number(*this, "threshold", o.threshold, at_least_0(o.threshold));
  const double max = o.max_value.value_or(0);
  check_number(*this, "max_value", max, at_least_0(max));
  describe<relu_fields>(*this, std::move(o));
}

LeakyReLU::LeakyReLU(double negative_slope, NameOptions o, Site site)
    : Layer(element(
          "LeakyReLU", o.name,
          [negative_slope](const Tensor& x, Site s) {
            return activations::relu(x, {.negative_slope = negative_slope}, s);
          },
          site)) {
  check_number(*this, "negative_slope", negative_slope,
               at_least_0(negative_slope));
  describe<leaky_relu_fields>(*this, negative_slope, std::move(o));
}

ELU::ELU(double alpha, NameOptions o, Site site)
    : Layer(element(
          "ELU", o.name,
          [alpha](const Tensor& x, Site s) {
            return activations::elu(x, alpha, s);
          },
          site)) {
  check_number(*this, "alpha", alpha, at_least_0(alpha));
  describe<elu_fields>(*this, alpha, std::move(o));
}

PReLU::PReLU(PReLUOptions options, Site site)
    : Layer(described<PReLUBase, prelu_fields>(site, std::move(options))) {}

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
  describe<softmax_fields>(*this, std::move(o));
}

void add_rectifier_classes(Classes& c) {
  c.layers["ReLU"] = &layer_of<ReLU, relu_fields>;
  c.layers["LeakyReLU"] = &layer_of<LeakyReLU, leaky_relu_fields>;
  c.layers["ELU"] = &layer_of<ELU, elu_fields>;
  c.layers["PReLU"] = &layer_of<PReLU, prelu_fields>;
  c.layers["Softmax"] = &layer_of<Softmax, softmax_fields>;
}

}  // namespace berth::keras
