// Multiple GPUs, example 3: weights kept after every epoch.
//
//   berth launch --workers 2 -- article_003_3 [--model 000_1|001_2]
//
// The article sets TF_CONFIG for two workers and starts one of them, which then
// waits for the other; here a launcher says it, and without one the strategy
// takes the devices of this process. The chief writes the files.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "models.h"

using namespace berth;

namespace {

void print_files(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    names.push_back(file.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  for (const auto& name : names) fmt::print("saved: {}\n", name);
}

// The weights of the best epoch are what is loaded in the end, and give the
// accuracy that validation saw.
int sensible() {
  article::print_devices();
  const auto mnist =
      keras::datasets::mnist::load_data({.draw_if_missing = true});
  const auto [x_train, y_train] = article::prepared_for_003(mnist.train);
  const auto [x_test, y_test] = article::prepared_for_003(mnist.test);
  auto train_dataset = data::Dataset::from_tensor_slices({x_train, y_train})
                           .shuffle(10'000)
                           .batch(64)
                           .prefetch(data::AUTOTUNE);
  const distribute::MultiWorkerMirroredStrategy strategy;
  auto model = article::compiled_for_003(strategy);
  const std::filesystem::path folder = "training_checkpoints";
  const std::string best = (folder / "best.safetensors").string();
  model.fit(train_dataset, {.epochs = 2,
                            .callbacks = {keras::callbacks::ModelCheckpoint(
                                best, {.monitor = "val_accuracy",
                                       .save_best_only = true,
                                       .save_weights_only = true})},
                            .validation_data = {x_test, y_test}});
  print_files(folder);

  auto again = article::compiled_for_003(strategy);
  again.build({-1, article::features_of_003()});
  again.load_weights(best);
  const keras::Logs logs = again.evaluate(x_test, y_test, {.batch_size = 256});
  fmt::print("test accuracy of the weights that were kept: {:.3f}\n",
             logs.at("accuracy"));
  strategy.leave();
  return 0;
}

int as_printed() {
  const distribute::MultiWorkerMirroredStrategy strategy;
  const auto [x_train, y_train] = article::prepared_for_003(
      keras::datasets::mnist::load_data({.draw_if_missing = true}).train);
  const auto train_dataset =
      data::Dataset::from_tensor_slices({x_train, y_train}).batch(64);
  auto model = article::compiled_for_003(strategy);
  const std::filesystem::path checkpoint_dir = "./training_checkpoints";
  const auto checkpoint_prefix = checkpoint_dir / "ckpt_{epoch}";
  const auto checkpoint_callback = keras::callbacks::ModelCheckpoint(
      checkpoint_prefix.string(),
      {.save_weights_only = true, .save_freq = "epoch"});
  model.fit(train_dataset, {.epochs = 2, .callbacks = {checkpoint_callback}});
  print_files(checkpoint_dir);
  strategy.leave();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_003_3", argc, argv, sensible, as_printed);
}
