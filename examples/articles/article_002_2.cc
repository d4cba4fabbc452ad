// A GPU and CPU cores, example 2: batches from the host to a model on a GPU.

#include "article.h"

using namespace berth;

namespace {

keras::Sequential make_model() {
  return keras::Sequential(
      {keras::Dense(64, {.activation = "relu"}), keras::Dense(10)});
}

int sensible() {
  article::print_devices();
  const auto dataset =
      data::Dataset::from_tensor_slices({random::uniform({10000, 100})})
          .batch(1024)
          .prefetch(data::AUTOTUNE);
  const keras::Model model = with_device("/GPU:0", make_model);
  auto predict =
      function([&](const Tensor& batch) { return model(batch); },
               {.name = "predict", .input_signature = {{{-1, 100}, float32}}});
  int64_t rows = 0;
  for (const Tensors& batch : dataset) rows += predict(batch[0]).shape()[0];
  fmt::print("{} rows\n", rows);
  article::print_placement(predict);
  return 0;
}

int as_printed() {
  const Tensor values = random::uniform({10000, 100});
  const auto dataset = with_device("/CPU:0", [&] {
    return data::Dataset::from_tensor_slices({values}).batch(1024);
  });
  const auto on_gpu = device("/GPU:0");
  const keras::Model model = make_model();
  for (const Tensors& batch : dataset) {
    Tensor predictions;
    {
      const auto model_on = device("/GPU:0");
      predictions = model(batch[0]);
    }
    { const auto process_on = device("/CPU:0"); }
  }
  fmt::print("done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_002_2", argc, argv, sensible, as_printed);
}
