// Distributing operations, example 2: a custom loop under MirroredStrategy.

#include <optional>

#include "models.h"

using namespace berth;

namespace {

constexpr int kEpochs = 5;
constexpr int64_t kBatch = 32;

data::Dataset make_dataset() {
  const Tensor x = random::normal({1000, 100});
  const Tensor y =
      one_hot(random::uniform({1000}, {.maxval = 10, .dtype = int32}), 10);
  return data::Dataset::from_tensor_slices({x, y}).batch(kBatch);
}

// Each replica computes its part of the batch in run(); the loss divides by the
// global batch, so that the losses of the replicas add up.
int sensible() {
  article::print_devices();
  const distribute::MirroredStrategy strategy;
  fmt::print("replicas: {}\n", strategy.num_replicas_in_sync());
  const auto scope = strategy.scope();
  const keras::Sequential model = article::model_of_001_2();
  const keras::Adam optimizer(0.01);
  const auto loss_fn = keras::losses::CategoricalCrossentropy();

  const auto step = function(
      [&](const Tensor& x, const Tensor& y) {
        GradientTape tape;
        const Tensor loss = loss_fn(y, model(x, true));
        const auto variables = model.trainable_variables();
        optimizer.apply_gradients(tape.gradient(loss, variables), variables);
        return loss;
      },
      {.name = "step"});
  const auto train_step = function(
      [&](const distribute::PerReplica& x, const distribute::PerReplica& y) {
        return strategy.reduce(distribute::ReduceOp::kSum,
                               strategy.run(step, x, y));
      },
      {.name = "train_step"});

  const auto batches = strategy.experimental_distribute_dataset(make_dataset());
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    double sum = 0;
    int steps = 0;
    for (const auto& batch : batches) {
      sum += train_step(batch[0], batch[1]).item<float>();
      ++steps;
    }
    fmt::print("Epoch {}, loss={:.4f}\n", epoch + 1, sum / steps);
  }
  article::print_placement(train_step);
  return 0;
}

int as_printed() {
  const distribute::MirroredStrategy strategy;
  std::optional<keras::Sequential> made;
  std::optional<keras::Adam> optimizer;
  keras::Loss loss_fn;
  {
    const auto scope = strategy.scope();
    made = article::model_of_001_2();
    optimizer.emplace(0.01);
    loss_fn = keras::losses::CategoricalCrossentropy();
  }
  const keras::Sequential& model = *made;
  const data::Dataset train_dataset = make_dataset();
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Tensor loss;
    for (const Tensors& batch : train_dataset) {
      GradientTape tape;
      const Tensor y_pred = model(batch[0]);
      loss = loss_fn(batch[1], y_pred);
      const Tensors grads = tape.gradient(loss, model.trainable_variables());
      optimizer->apply_gradients(grads, model.trainable_variables());
    }
    fmt::print("Epoch {}, loss={}\n", epoch + 1, loss.item<float>());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_001_2", argc, argv, sensible, as_printed);
}
