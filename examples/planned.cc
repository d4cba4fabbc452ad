// The planner at work: a model of two towers on devices that differ, placed by
// what its ops cost. Nobody names a device. Run it as
//   BERTH_SIM=GPUx2 BERTH_SIM_SPEEDS=2,1 planned
// or with --devices "CPU[0],CPU[1-3]" on core sets.

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "berth/berth.h"

using namespace berth;

namespace {

// Half-moons: which of two interleaved arcs a point lies on.
std::pair<Tensor, Tensor> half_moons(int64_t n) {
  const Tensor angle = random::uniform({n, 1}) * 3.14159265f;
  const Tensor side = math::round(random::uniform({n, 1}));
  const Tensor sign = 1.f - 2.f * side;
  const Tensor x = math::cos(angle) * sign + side;
  const Tensor y = math::sin(angle) * sign + 0.3f * side;
  return {concat({x, y}, 1), side};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"A model whose ops the planner places"};
  std::string devices;
  int steps = 50;
  app.add_option("--devices", devices, "a device list: CPU[0],CPU[1-3]");
  app.add_option("--steps", steps, "training steps");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!devices.empty()) config::set_device_list(devices);

    // Two towers that nothing orders: they can run side by side.
    const keras::KerasTensor in = keras::Input(Shape({2}));
    const auto tower = [&](int64_t width, const char* activation) {
      auto h = keras::Dense(width, {.activation = activation})(in);
      return keras::Dense(width, {.activation = activation})(h);
    };
    const auto both = keras::Concatenate()(
        keras::KerasTensors{tower(256, "relu"), tower(128, "tanh")});
    keras::Model model(in, keras::Dense(1)(both));
    model.compile(
        {.optimizer = "adam",
         .loss = keras::losses::BinaryCrossentropy({.from_logits = true}),
         .placement = "auto"});

    const auto [x, y] = half_moons(256);
    float loss = 0;
    for (int k = 0; k < steps; ++k) {
      loss = model.train_on_batch(x, y).item<float>();
    }
    fmt::print("loss after {} steps: {:.4f}\n\n", steps, loss);
    const placement::Report report = model.placement();
    fmt::print("{}\n", report.brief());
  } catch (const errors::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
  return 0;
}
