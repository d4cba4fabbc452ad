// Activation, and activations by name.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/activations.h"
#include "berth/keras/layers.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/config/custom_objects.h"
#include "keras/models/layer_checks.h"
#include "keras/models/remat.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

using Apply = Tensor (*)(const Tensor&, Site);
struct Named {
  const char* name;
  Apply apply;
};
constexpr Named kActivations[] = {
    {"", [](const Tensor& x, Site) { return x; }},
    {"linear", [](const Tensor& x, Site) { return x; }},
    {"relu", [](const Tensor& x, Site s) { return nn::relu(x, s); }},
    {"sigmoid", [](const Tensor& x, Site s) { return math::sigmoid(x, s); }},
    {"tanh", [](const Tensor& x, Site s) { return math::tanh(x, s); }},
    {"gelu", [](const Tensor& x, Site s) { return nn::gelu(x, {}, s); }},
    {"gelu_tanh", [](const Tensor& x,
                     Site s) { return nn::gelu(x, {.approximate = true}, s); }},
    {"softmax", [](const Tensor& x, Site s) { return nn::softmax(x, -1, s); }},
    {"log_softmax",
     [](const Tensor& x, Site s) { return nn::log_softmax(x, -1, s); }},
    {"elu", &nn::elu},
    {"selu", &nn::selu},
    {"leaky_relu",
     [](const Tensor& x, Site s) { return nn::leaky_relu(x, 0.2, s); }},
    {"relu6", &nn::relu6},
    {"silu", &nn::silu},
    {"swish", &nn::swish},
    {"softplus", &math::softplus},
    {"softsign", &math::softsign},
    {"log_sigmoid", &math::log_sigmoid},
    {"exponential", &math::exp},
    {"hard_sigmoid", &nn::hard_sigmoid},
    {"hard_swish", &nn::hard_swish},
    {"hard_silu", &nn::hard_swish},
    {"mish", &nn::mish},
    {"celu",
     [](const Tensor& x, Site s) { return activations::celu(x, 1, s); }},
    {"glu", [](const Tensor& x, Site s) { return activations::glu(x, -1, s); }},
    {"hard_shrink", [](const Tensor& x,
                       Site s) { return activations::hard_shrink(x, 0.5, s); }},
    {"hard_tanh", &activations::hard_tanh},
    {"soft_shrink", [](const Tensor& x,
                       Site s) { return activations::soft_shrink(x, 0.5, s); }},
    {"sparse_plus", &activations::sparse_plus},
    {"sparse_sigmoid", &activations::sparse_sigmoid},
    {"sparsemax",
     [](const Tensor& x, Site s) { return activations::sparsemax(x, -1, s); }},
    {"squareplus",
     [](const Tensor& x, Site s) { return activations::squareplus(x, 4, s); }},
    {"tanh_shrink", &activations::tanh_shrink},
};

const Named* find(const std::string& name) {
  for (const Named& a : kActivations) {
    if (name == a.name) return &a;
  }
  return nullptr;
}

std::string unknown(const std::string& name) {
  std::string known;
  for (const Named& a : kActivations) {
    if (*a.name)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", a.name);
  }
  return fmt::format("there is no activation \"{}\"; expected one of {}", name,
                     known);
}

class ActivationBase final : public LayerBase {
 public:
  ActivationBase(const std::string& activation, const NameOptions& o, Site site)
      : LayerBase("Activation", o.name, site), activation_(activation) {
    check_activation(state(), activation_);
  }
  Tensors call(const Tensors& x, bool) override {
    return {apply_activation(activation_, one_input(state(), x), site())};
  }

 private:
  const std::string activation_;
};

void activation_fields(Fields& f, std::string& activation, NameOptions&) {
  f.must("activation", activation);
}

}  // namespace

void check_activation(const LayerState& s, const std::string& name) {
  if (!find(name) && !find_custom_object(name).function) {
    fail_in(s, unknown(name));
  }
}

Tensor apply_activation(const std::string& name, const Tensor& x, Site site) {
  const Named* a = find(name);
  CustomFunction own;
  if (!a) own = find_custom_object(name).function;
  if (!a && !own) throw errors::InvalidArgument(unknown(name));
  const auto apply = [&](const Tensor& t) {
    return a ? a->apply(t, site) : own(t);
  };
  const bool is_none = name.empty() || name == "linear";
  if (is_none || !recomputes_activations()) return apply(x);
  return call_recomputed([&](const Tensors& t) { return Tensors{apply(t[0])}; },
                         {x}, site)[0];
}

Activation::Activation(const std::string& activation, NameOptions options,
                       Site site)
    : Layer(described<ActivationBase, activation_fields>(site, activation,
                                                         std::move(options))) {}

void add_activation_classes(Classes& c) {
  c.layers["Activation"] = &layer_of<Activation, activation_fields>;
}

}  // namespace berth::keras
