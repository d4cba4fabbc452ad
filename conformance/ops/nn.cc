// Activations, bias and dropout.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

void add_activation(Cases& cases, const char* op, DTypeSet types,
                    bool approximate) {
  const std::string suffix = approximate ? "_approximate" : "";
  const auto add = [&](const char* label, Input x) -> Case& {
    Case& c = cases.add(op, label + suffix, {std::move(x)}).types(types);
    if (approximate) c.attr("approximate", true);
    return c;
  };
  add("matrix", Input({5, 7}).uniform(-4, 4).not_zero());
  add("odd_length", Input({131}).not_zero());
  add("scalar", Input({}).not_zero());
  add("empty", Input({0, 3}));
  add("special", Input({26}).special())
      .types(kFloatingTypes)
      .skip_gradients("no differences at NaN and infinity");
  add("1m", Input({1024, 1024})).types(dtype_bit(float32)).perf_only();
}

void add_activation_grad(Cases& cases, const char* op, DTypeSet types,
                         bool approximate) {
  const std::string suffix = approximate ? "_approximate" : "";
  const auto add = [&](const char* label, Shape shape) -> Case& {
    Case& c = cases
                  .add(op, label + suffix,
                       {Input(shape), Input(shape).uniform(-4, 4).not_zero()})
                  .types(types);
    if (approximate) c.attr("approximate", true);
    return c;
  };
  add("matrix", {5, 7});
  add("scalar", {});
  add("empty", {0, 3});
  add("1m", {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

void add_bias(Cases& cases) {
  const auto add = [&](const char* label, Shape shape) -> Case& {
    const Shape bias{shape[shape.rank() - 1]};
    Case& c = cases.add("BiasAddGrad", label, {Input(shape)})
                  .types(kNumberTypes)
                  .close_to(1e-5, 1e-5);
    if (shape.num_elements() > 100000) {
      c.types(dtype_bit(float32)).perf_only();
    }
    return cases.add("BiasAdd", label, {Input(shape), Input(bias)})
        .types(kNumberTypes);
  };
  add("matrix", {3, 4});
  add("image", {2, 3, 3, 5});
  add("vector", {4});
  add("empty", {0, 3});
  add("no_channels", {3, 0});
  add("1m", {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

void add_dropout(Cases& cases) {
  const auto add = [&](const char* label, Shape shape, double rate) -> Case& {
    return cases.add("Dropout", label, {Input(shape).not_zero()})
        .attr("rate", rate)
        .attr("seed", int64_t{11})
        .attr("op_id", int64_t{5});
  };
  add("half", {5, 7}, 0.5);
  add("some", {131}, 0.1);
  add("none", {4, 3}, 0.0);
  add("scalar", {}, 0.5);
  add("empty", {0, 3}, 0.5);
  add("1m", {1024, 1024}, 0.5).types(dtype_bit(float32)).perf_only();
  const auto grad = [&](const char* label, Shape shape, double rate) {
    cases
        .add("DropoutGrad", label,
             {Input(shape), Input(shape).whole(0, 1, uint8)})
        .attr("rate", rate);
  };
  grad("half", {5, 7}, 0.5);
  grad("some", {131}, 0.1);
  grad("empty", {0, 3}, 0.5);
}

}  // namespace

void add_nn_cases(Cases& cases) {
  add_activation(cases, "Relu", kNumberTypes, false);
  add_activation_grad(cases, "ReluGrad", kNumberTypes, false);
  for (const bool approximate : {false, true}) {
    add_activation(cases, "Gelu", kFloatingTypes, approximate);
    add_activation_grad(cases, "GeluGrad", kFloatingTypes, approximate);
  }
  add_bias(cases);
  add_dropout(cases);
}

}  // namespace berth::conformance
