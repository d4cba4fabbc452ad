// Distributing operations, example 3: one layer per GPU.

#include "article.h"

using namespace berth;

namespace {

int sensible() {
  article::print_devices();
  const auto on = [](const char* name, const keras::DenseOptions& o,
                     int64_t units) {
    return with_device(name, [&] { return keras::Dense(units, o); });
  };
  const keras::Layer first = on("/GPU:0", {.activation = "relu"}, 128);
  const keras::Layer second = on("/GPU:1", {.activation = "softmax"}, 10);
  auto forward = function([&](const Tensor& x) { return second(first(x)); },
                          {.name = "forward"});
  const Tensor output = forward(random::normal({64, 100}));
  fmt::print("output: {} on {}\n", output.shape().str(), output.device());
  article::print_placement(forward);
  return 0;
}

Tensor first_layer(const std::string& gpu1, const Tensor& inputs) {
  const auto on = device(gpu1);
  const keras::Dense layer(128, {.activation = "relu"});
  return layer(inputs);
}

Tensor second_layer(const std::string& gpu2, const Tensor& inputs) {
  const auto on = device(gpu2);
  const keras::Dense layer(10, {.activation = "softmax"});
  return layer(inputs);
}

void forward(const std::string& gpu1, const std::string& gpu2) {
  const Tensor input_tensor = random::normal({64, 100});
  const Tensor output_1 = first_layer(gpu1, input_tensor);
  const Tensor output_2 = second_layer(gpu2, output_1);
  fmt::print("Output shape: {}\n", output_2.shape().str());
}

int as_printed() {
  const auto gpus = config::list_physical_devices("GPU");
  if (gpus.size() < 2) {
    fmt::print(
        "At least 2 GPUs needed for model parallelism. "
        "Please configure.\n");
    return 0;
  }
  try {
    forward(gpus[0].name, gpus[1].name);
  } catch (const errors::InvalidArgument& e) {
    fmt::print("{}\n", e.what());
  }
  for (int call = 0; call < 3; ++call) forward("/GPU:0", "/GPU:1");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_001_3", argc, argv, sensible, as_printed);
}
