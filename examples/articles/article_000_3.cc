// Device placement, example 3: a pipeline that is ready before the step is.

#include "article.h"

using namespace berth;

namespace {

struct Examples {
  Tensor images, labels;
};

Examples generate_data(int64_t num_samples = 1000) {
  return {random::normal({num_samples, 28, 28, 1}),
          random::uniform({num_samples}, {.maxval = 10, .dtype = int32})};
}

keras::Sequential make_model() {
  return keras::Sequential({
      keras::Conv2D(32, 3, {.activation = "relu"}),
      keras::MaxPooling2D(2),
      keras::Flatten(),
      keras::Dense(10, {.activation = "softmax"}),
  });
}

// Trains on all batches, in a loop of one's own; prints where the step ran.
void train(const data::Dataset& dataset) {
  const keras::Model model = make_model();
  const keras::Optimizer optimizer = keras::Adam(0.001);
  const keras::Loss loss_fn = "sparse_categorical_crossentropy";
  auto train_step = function(
      [&](const Tensor& images, const Tensor& labels) {
        GradientTape tape;
        const Tensor loss = loss_fn(labels, model(images, true));
        const auto variables = model.trainable_variables();
        optimizer.apply_gradients(tape.gradient(loss, variables), variables);
        return loss;
      },
      {.name = "train_step"});
  Tensor loss;
  int64_t steps = 0;
  for (const Tensors& batch : dataset) {
    loss = train_step(batch[0], batch[1]);
    ++steps;
  }
  fmt::print("{} steps, last loss {:.3f}\n", steps, loss.item<float>());
  article::print_placement(train_step);
}

// The buffer of shuffle is a number of elements; prefetch may choose its own.
int sensible() {
  article::print_devices();
  const auto [images, labels] = generate_data();
  train(data::Dataset::from_tensor_slices({images, labels})
            .shuffle(images.shape()[0])
            .batch(64)
            .prefetch(data::AUTOTUNE));
  return 0;
}

int as_printed() {
  const auto [images, labels] = generate_data();
  const int64_t buffer_size = data::AUTOTUNE;
  train(data::Dataset::from_tensor_slices({images, labels})
            .shuffle(buffer_size)
            .batch(64)
            .prefetch(buffer_size));
  fmt::print("Training done using CPU prefetching\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_000_3", argc, argv, sensible, as_printed);
}
