// Multiple GPUs, example 1: fit under MirroredStrategy.

#include <optional>
#include <utility>

#include "article.h"

using namespace berth;

namespace {

keras::Sequential create_model() {
  return keras::Sequential({
      keras::Dense(128, {.activation = "relu"}),
      keras::Dense(10, {.activation = "softmax"}),
  });
}

std::pair<Tensor, Tensor> prepared(const keras::datasets::Split& split) {
  const Tensor x = math::cast(reshape(split.x, {-1, 784}), float32) / 255.0;
  return {x, math::cast(split.y, int32)};
}

// All GPUs there are, else the CPU; the batch grows with the replicas, and the
// test set says what came of it.
int sensible() {
  article::print_devices();
  const distribute::MirroredStrategy strategy;
  const int replicas = strategy.num_replicas_in_sync();
  fmt::print("Number of devices: {}\n", replicas);
  std::optional<keras::Sequential> model;
  {
    const auto scope = strategy.scope();
    model = create_model();
    model->compile({.optimizer = "adam",
                    .loss = "sparse_categorical_crossentropy",
                    .metrics = {"accuracy"}});
  }
  const auto mnist =
      keras::datasets::mnist::load_data({.draw_if_missing = true});
  const auto [x_train, y_train] = prepared(mnist.train);
  const auto [x_test, y_test] = prepared(mnist.test);
  const auto train_dataset =
      data::Dataset::from_tensor_slices({x_train, y_train})
          .shuffle(10'000)
          .batch(64 * replicas)
          .prefetch(data::AUTOTUNE);
  model->fit(train_dataset, {.epochs = 2});
  const keras::Logs logs = model->evaluate(x_test, y_test, {.batch_size = 256});
  fmt::print("test accuracy: {:.3f}\n", logs.at("accuracy"));
  article::print_placement(*model);
  return 0;
}

int as_printed() {
  const auto gpus = config::list_physical_devices("GPU");
  if (gpus.empty()) {
    fmt::print("No GPUs detected, defaulting to CPU training.\n");
    return 0;
  }
  try {
    std::vector<std::string> names;
    for (const auto& gpu : gpus) {
      config::experimental::set_memory_growth(gpu, true);
      names.push_back(gpu.name);
    }
    // The names of physical devices, which these are, are accepted.
    const distribute::MirroredStrategy strategy({.devices = names});
    fmt::print("Number of devices: {}\n", strategy.num_replicas_in_sync());
    std::optional<keras::Sequential> model;
    {
      const auto scope = strategy.scope();
      model = create_model();
      model->compile({.optimizer = "adam",
                      .loss = "sparse_categorical_crossentropy",
                      .metrics = {"accuracy"}});
    }
    const auto [x_train, y_train] = prepared(
        keras::datasets::mnist::load_data({.draw_if_missing = true}).train);
    const auto train_dataset =
        data::Dataset::from_tensor_slices({x_train, y_train}).batch(64);
    model->fit(train_dataset, {.epochs = 2});
  } catch (const errors::Error& e) {
    fmt::print("{}\n", e.what());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_003_1", argc, argv, sensible, as_printed);
}
