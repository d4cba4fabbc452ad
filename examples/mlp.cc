// mlp: trains a network of two dense layers to read handwritten digits.
//
//   mlp                 MNIST where it is found, else digits drawn here
//   mlp --data DIR      MNIST's four files in DIR
//   mlp --steps 100     ends after 100 steps

#include "example.h"

namespace {

using berth::Tensor;
namespace keras = berth::keras;

// Bytes [n, h, w] to floats [n, h * w] from 0 to 1.
Tensor pixels(const Tensor& images) {
  const berth::Shape& s = images.shape();
  const Tensor flat = berth::reshape(images, {s[0], s[1] * s[2]});
  return berth::math::cast(flat, berth::float32) * (1 / 255.0);
}
Tensor classes(const Tensor& labels) {
  return berth::math::cast(labels, berth::int32);
}

int run(const example::Options& o) {
  berth::random::set_seed(o.seed);
  const auto d = keras::datasets::mnist::load_data(
      {.data_dir = o.data, .allow_download = false, .draw_if_missing = true});
  fmt::print("devices: {}\ndata: {}\n", example::devices_text(), d.source);
  const example::Sets sets{pixels(d.train.x), classes(d.train.y),
                           pixels(d.test.x), classes(d.test.y), d.source};
  const keras::Sequential model({
      keras::InputLayer({sets.x_train.shape()[1]}),
      keras::Dense(128, {.activation = "relu"}),
      keras::Dense(10),
  });
  return example::train(model, keras::Adam(1e-3), sets, o);
}

}  // namespace

int main(int argc, char** argv) {
  example::Options o;
  CLI::App app("Trains two dense layers to read digits.", "mlp");
  example::add_flags(&app, &o);
  return example::main_of(&app, argc, argv, [&] { return run(o); });
}
