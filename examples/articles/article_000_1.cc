// Device placement, example 1: the layers of a model on two GPUs (tests
// simulate them), and a strategy around it.

#include "models.h"

using namespace berth;

namespace {

// A replica spans two GPUs, which its scopes name by their number within it:
// with four GPUs there are two replicas.
int sensible() {
  article::print_devices();
  const bool pairs = config::list_logical_devices("GPU").size() >= 2;
  const distribute::MirroredStrategy strategy(
      distribute::StrategyOptions{.devices_per_replica = pairs ? 2 : 1});
  fmt::print("replicas: {}\n", strategy.num_replicas_in_sync());
  const auto scope = strategy.scope();
  const keras::Model model = article::model_of_000_1();
  const keras::Adam optimizer(0.001);
  const auto loss_fn = keras::losses::CategoricalCrossentropy();

  const auto train_step = function(
      [&](const Tensor& images, const Tensor& labels) {
        GradientTape tape;
        const Tensor loss = loss_fn(labels, model(images, true));
        const auto variables = model.trainable_variables();
        optimizer.apply_gradients(tape.gradient(loss, variables), variables);
        return loss;
      },
      {.name = "train_step"});
  const auto distributed_step = function(
      [&](const distribute::PerReplica& images,
          const distribute::PerReplica& labels) {
        return strategy.reduce(distribute::ReduceOp::kSum,
                               strategy.run(train_step, images, labels));
      },
      {.name = "distributed_step"});

  const Tensor images = random::normal({128, 784});
  const Tensor labels =
      one_hot(random::uniform({128}, {.maxval = 10, .dtype = int32}), 10);
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices({images, labels})
          .batch(128)
          .repeat(10));
  Tensor loss;
  for (const auto& batch : batches) loss = distributed_step(batch[0], batch[1]);
  fmt::print("loss after 10 steps: {:.4f}\n", loss.item<float>());
  article::print_placement(distributed_step);
  return 0;
}

int as_printed() {
  const distribute::MirroredStrategy strategy;
  {
    const auto scope = strategy.scope();
    const keras::Model model = article::model_of_000_1();
    const keras::Adam optimizer(0.001);
    const auto loss_fn = keras::losses::CategoricalCrossentropy();
    const auto train_step =
        function([&](const Tensor& images, const Tensor& labels) {
          GradientTape tape;
          const Tensor predictions = model(images);
          const Tensor loss = loss_fn(labels, predictions);
          const auto variables = model.trainable_variables();
          const Tensors gradients = tape.gradient(loss, variables);
          optimizer.apply_gradients(gradients, variables);
        });
    const Tensor images = random::normal({128, 784});
    const Tensor labels = random::normal({128, 10});
    for (int i = 0; i < 10; ++i) train_step(images, labels);
  }
  fmt::print("Training completed with explicit device placement.\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_000_1", argc, argv, sensible, as_printed);
}
