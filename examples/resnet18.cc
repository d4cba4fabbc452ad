// resnet18: trains a residual network (He et al. 2016) of 18 layers on
// 32 x 32 colour images of ten classes.
//
//   resnet18                 CIFAR-10 where it is found, else drawn images
//   resnet18 --data DIR      folder with CIFAR-10's binary version
//   resnet18 --width 16      a network of a quarter of the channels
//   resnet18 --steps 20      ends after 20 steps

#include "example.h"

namespace {

using berth::Tensor;
namespace keras = berth::keras;

Tensor pixels(const Tensor& images) {
  return berth::math::cast(images, berth::float32) * (1 / 255.0);
}
Tensor classes(const Tensor& labels) {
  return berth::math::cast(labels, berth::int32);
}

keras::KerasTensor conv_norm(const keras::KerasTensor& x, int64_t filters,
                             int64_t window, int64_t stride) {
  const auto y = keras::Conv2D(filters, window,
                               {.padding = "same",
                                .strides = stride,
                                .use_bias = false,
                                .kernel_initializer = "he_normal"})(x);
  return keras::BatchNormalization({.momentum = 0.9})(y);
}

// Two convolutions, and the input beside them.
keras::KerasTensor block(const keras::KerasTensor& x, int64_t filters,
                         int64_t stride) {
  const auto relu = [](const keras::KerasTensor& t) {
    return keras::Activation("relu")(t);
  };
  const auto y =
      conv_norm(relu(conv_norm(x, filters, 3, stride)), filters, 3, 1);
  const bool same = stride == 1 && x.shape()[3] == filters;
  const auto beside = same ? x : conv_norm(x, filters, 1, stride);
  return relu(keras::Add()(keras::KerasTensors{y, beside}));
}

keras::Model make_model(int64_t width) {
  const auto image = keras::Input({32, 32, 3});
  auto x = keras::Activation("relu")(conv_norm(image, width, 3, 1));
  for (const int64_t stage : {1, 2, 4, 8}) {
    x = block(x, stage * width, stage == 1 ? 1 : 2);
    x = block(x, stage * width, 1);
  }
  const auto y = keras::Dense(10)(keras::GlobalAveragePooling2D()(x));
  return keras::Model(image, y, {.name = "resnet18"});
}

int run(const example::Options& o, int64_t width) {
  berth::random::set_seed(o.seed);
  const auto d = keras::datasets::cifar10::load_data(
      {.data_dir = o.data, .draw_if_missing = true});
  fmt::print("devices: {}\ndata: {}\n", example::devices_text(), d.source);
  const example::Sets sets{pixels(d.train.x), classes(d.train.y),
                           pixels(d.test.x), classes(d.test.y), d.source};
  return example::train(make_model(width), keras::SGD(0.02, {.momentum = 0.9}),
                        sets, o);
}

}  // namespace

int main(int argc, char** argv) {
  example::Options o;
  int64_t width = 64;
  CLI::App app("Trains ResNet-18 on 32 x 32 images.", "resnet18");
  example::add_flags(&app, &o);
  app.add_option("--width", width, "channels of the first stage")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  return example::main_of(&app, argc, argv, [&] { return run(o, width); });
}
