// Device placement, example 1: the layers of a model on two GPUs.

#include "article.h"

using namespace berth;

namespace {

int sensible() {
  article::print_devices();
  const auto input = keras::Input({784}, {.name = "input"});
  const auto hidden = with_device("/GPU:0", [&] {
    return keras::Dense(128, {.activation = "relu", .name = "dense1"})(input);
  });
  const auto narrow = with_device("/GPU:1", [&] {
    return keras::Dense(64, {.activation = "relu", .name = "dense2"})(hidden);
  });
  const auto output = with_device("/GPU:0", [&] {
    return keras::Dense(10,
                        {.activation = "softmax", .name = "output"})(narrow);
  });
  const keras::Model model(input, output);
  const keras::Adam optimizer(0.001);
  const auto loss_fn = keras::losses::CategoricalCrossentropy();

  auto train_step = function(
      [&](const Tensor& images, const Tensor& labels) {
        GradientTape tape;
        const Tensor loss = loss_fn(labels, model(images, true));
        const auto variables = model.trainable_variables();
        optimizer.apply_gradients(tape.gradient(loss, variables), variables);
        return loss;
      },
      {.name = "train_step"});

  const Tensor images = random::normal({128, 784});
  const Tensor labels =
      one_hot(random::uniform({128}, {.maxval = 10, .dtype = int32}), 10);
  Tensor loss;
  for (int step = 0; step < 10; ++step) loss = train_step(images, labels);
  fmt::print("loss after 10 steps: {:.4f}\n", loss.item<float>());
  article::print_placement(train_step);
  return 0;
}

int as_printed() {
  fmt::print(stderr,
             "article_000_1: --as-printed needs distribute::MirroredStrategy, "
             "which this version does not have\n");
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_000_1", argc, argv, sensible, as_printed);
}
