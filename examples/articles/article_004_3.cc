// Pinning gradients, example 3: an op that a device may not have.

#include "article.h"

using namespace berth;

namespace {

Tensor inputs() { return constant({{1.f}, {2.f}, {3.f}}); }

int sensible() {
  article::print_devices();
  const Variable phase = with_device(
      "/GPU:0", [] { return Variable(constant(0.5f), {.name = "phase"}); });
  const keras::SGD optimizer(0.1);
  const auto loss_object = keras::losses::MeanSquaredError();
  auto train_step = function(
      [&](const Tensor& x, const Tensor& y) {
        GradientTape tape;
        Tensor loss;
        {
          const auto on = device("/GPU:0");
          loss = loss_object(y, math::angle(math::complex(x, phase)));
        }
        optimizer.apply_gradients({tape.gradient(loss, phase)}, {phase});
        return loss;
      },
      {.name = "train_step"});
  const Tensor x = inputs(), y = math::atan2(constant(2.f), x);
  for (int epoch = 0; epoch < 300; ++epoch) train_step(x, y);
  fmt::print("final phase: {:.3f}\n", phase.value().item<float>());
  article::print_placement(train_step);
  return 0;
}

int as_printed() {
  config::experimental::set_visible_devices(
      {config::list_physical_devices("GPU").at(0)}, "GPU");
  const auto model = [](const Tensor& x) {
    return math::angle(x + math::complex(constant(0.f), constant(1.f)));
  };
  const keras::SGD optimizer(0.01);
  const auto loss_object = keras::losses::MeanSquaredError();
  const auto train_step = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = loss_object(y, model(x));
    Tensors gradients;
    {
      const auto on = device("/GPU:0");
      gradients = tape.gradient(loss, std::vector<Variable>{});
    }
    optimizer.apply_gradients(gradients, {});
    return loss;
  };
  const Tensor labels = constant({{2.f}, {4.f}, {6.f}});
  for (int epoch = 0; epoch < 100; ++epoch) {
    const Tensor loss = train_step(inputs(), labels);
    fmt::print("Epoch: {}, Loss: {}\n", epoch, loss.item<float>());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_004_3", argc, argv, sensible, as_printed);
}
