// Multiple GPUs, example 2: fit on the devices of several processes.
//
//   berth launch --workers 2 -- article_003_2 [--model 000_1|001_2]
//
// The article writes TF_CONFIG into the program, with an index that differs in
// each worker. Here the launcher sets it; --as-printed sets the article's where
// nobody has set one, and then cannot join a cluster of other machines.

#include <cstdlib>
#include <utility>

#include "models.h"

using namespace berth;

namespace {

// The batch grows with the replicas; the test set says what came of it, the
// same in every task.
int sensible() {
  const distribute::MultiWorkerMirroredStrategy strategy;
  const int replicas = strategy.num_replicas_in_sync();
  fmt::print("Number of devices: {}\n", replicas);
  const auto mnist =
      keras::datasets::mnist::load_data({.draw_if_missing = true});
  const auto [x_train, y_train] = article::prepared_for_003(mnist.train);
  const auto [x_test, y_test] = article::prepared_for_003(mnist.test);
  auto model = article::compiled_for_003(strategy);
  model.fit(data::Dataset::from_tensor_slices({x_train, y_train})
                .shuffle(10'000)
                .batch(64 * replicas)
                .prefetch(data::AUTOTUNE),
            {.epochs = 2});
  const keras::Logs logs = model.evaluate(x_test, y_test, {.batch_size = 256});
  fmt::print("test accuracy: {:.3f}\n", logs.at("accuracy"));
  strategy.leave();
  return 0;
}

int as_printed() {
  constexpr int kKeep = 0;  // what a launcher has set
  setenv("TF_CONFIG",
         R"({"cluster": {"worker": ["10.0.0.2:12345", "10.0.0.3:12345"]},)"
         R"( "task": {"type": "worker", "index": 0}})",
         kKeep);
  const distribute::MultiWorkerMirroredStrategy strategy;
  fmt::print("Number of devices: {}\n", strategy.num_replicas_in_sync());
  const auto [x_train, y_train] = article::prepared_for_003(
      keras::datasets::mnist::load_data({.draw_if_missing = true}).train);
  const auto train_dataset =
      data::Dataset::from_tensor_slices({x_train, y_train}).batch(64);
  auto model = article::compiled_for_003(strategy);
  model.fit(train_dataset, {.epochs = 2});
  strategy.leave();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_003_2", argc, argv, sensible, as_printed);
}
