// Pinning gradients, example 1: one GPU.

#include "article.h"

using namespace berth;

namespace {

class SimpleModel : public keras::LayerBase {
 public:
  SimpleModel() : LayerBase("simple_model") {}
  Tensors call(const Tensors& x, bool) override { return {dense_(x[0])}; }

 private:
  const keras::Layer dense_ = track(keras::Dense(
      1, {.use_bias = false, .kernel_initializer = "ones", .name = "dense"}));
};

Tensor inputs() { return constant({{1.f}, {2.f}, {3.f}}); }
Tensor labels() { return constant({{2.f}, {4.f}, {6.f}}); }

int sensible() {
  const auto gpus = config::list_physical_devices("GPU");
  if (!gpus.empty()) config::set_visible_devices({gpus[0]}, "GPU");
  article::print_devices();
  const auto model =
      with_device("/GPU:0", [] { return keras::Model::make<SimpleModel>(); });
  const keras::SGD optimizer(0.01);
  const auto loss_object = keras::losses::MeanSquaredError();
  auto train_step = function(
      [&](const Tensor& x, const Tensor& y) {
        GradientTape tape;
        const Tensor loss = loss_object(y, model(x));
        const auto variables = model.trainable_variables();
        optimizer.apply_gradients(
            tape.gradient(loss, variables, {.device = "/GPU:0"}), variables);
        return loss;
      },
      {.name = "train_step"});
  const Tensor x = inputs(), y = labels();
  for (int epoch = 0; epoch < 100; ++epoch) train_step(x, y);
  fmt::print("final weight: {:.4f}\n",
             model.trainable_variables()[0].value().item<float>());
  article::print_placement(train_step);
  return 0;
}

int as_printed() {
  config::experimental::set_visible_devices(
      {config::list_physical_devices("GPU").at(0)}, "GPU");
  const auto model = keras::Model::make<SimpleModel>();
  const keras::SGD optimizer(0.01);
  const auto loss_object = keras::losses::MeanSquaredError();
  const auto train_step = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = loss_object(y, model(x));
    const auto variables = model.trainable_variables();
    Tensors gradients;
    {
      const auto on = device("/GPU:0");
      gradients = tape.gradient(loss, variables);
    }
    optimizer.apply_gradients(gradients, variables);
    return loss;
  };
  const Tensor x = inputs(), y = labels();
  for (int epoch = 0; epoch < 100; ++epoch) {
    const Tensor loss = train_step(x, y);
    fmt::print("Epoch: {}, Loss: {}\n", epoch, loss.item<float>());
  }
  fmt::print("Final Weights {}\n",
             model.trainable_variables()[0].value().str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_004_1", argc, argv, sensible, as_printed);
}
