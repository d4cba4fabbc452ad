// Pinning gradients, example 2: one copy of the model per GPU.

#include "article.h"

using namespace berth;

namespace {

constexpr int kNumGpus = 2;

class SimpleModel : public keras::LayerBase {
 public:
  SimpleModel() : LayerBase("simple_model") {}
  Tensors call(const Tensors& x, bool) override { return {dense_(x[0])}; }

 private:
  const keras::Layer dense_ =
      track(keras::Dense(1, {.use_bias = false, .kernel_initializer = "ones"}));
};

std::string gpu(int i) { return fmt::format("/GPU:{}", i); }

Tensor inputs() { return constant({{1.f}, {2.f}, {3.f}, {4.f}, {5.f}, {6.f}}); }
Tensor labels() {
  return constant({{2.f}, {4.f}, {6.f}, {8.f}, {10.f}, {12.f}});
}

void print_weights(const std::vector<keras::Model>& models) {
  for (int i = 0; i < kNumGpus; ++i) {
    fmt::print("Final weights on GPU{}: {:.4f}\n", i,
               models[i].trainable_variables()[0].value().item<float>());
  }
}

int sensible() {
  article::print_devices();
  std::vector<keras::Model> models;
  std::vector<keras::Optimizer> optimizers;
  for (int i = 0; i < kNumGpus; ++i) {
    const auto on = device(gpu(i));
    models.push_back(keras::Model::make<SimpleModel>());
    optimizers.push_back(keras::SGD(0.01));
  }
  const auto loss_object = keras::losses::MeanSquaredError();
  auto train_step = function(
      [&](const Tensor& x, const Tensor& y) {
        Tensor loss_sum, grad_sum;
        for (int i = 0; i < kNumGpus; ++i) {
          const Tensor x_i = x[{slice(i, {}, kNumGpus)}];
          const Tensor y_i = y[{slice(i, {}, kNumGpus)}];
          GradientTape tape;
          const Tensor loss = loss_object(y_i, models[i](x_i));
          const Tensor grad =
              tape.gradient(loss, models[i].trainable_variables()[0]);
          loss_sum = i == 0 ? loss : loss_sum + loss;
          grad_sum = i == 0 ? grad : grad_sum + grad;
        }
        for (int i = 0; i < kNumGpus; ++i) {
          optimizers[i].apply_gradients({grad_sum * (1.f / kNumGpus)},
                                        models[i].trainable_variables());
        }
        return loss_sum * (1.f / kNumGpus);
      },
      {.name = "train_step"});
  const Tensor x = inputs(), y = labels();
  Tensor loss;
  for (int epoch = 0; epoch < 100; ++epoch) loss = train_step(x, y);
  fmt::print("loss: {:.6f}\n", loss.item<float>());
  print_weights(models);
  article::print_placement(train_step);
  return 0;
}

int as_printed() {
  const auto gpu_devices = config::list_physical_devices("GPU");
  if (gpu_devices.size() < kNumGpus) {
    throw errors::InvalidArgument("Not enough GPUs available");
  }
  config::experimental::set_visible_devices(gpu_devices, "GPU");
  std::vector<keras::Model> models;
  std::vector<keras::Optimizer> optimizers;
  for (int i = 0; i < kNumGpus; ++i) {
    models.push_back(keras::Model::make<SimpleModel>());
    optimizers.push_back(keras::SGD(0.01));
  }
  const auto loss_object = keras::losses::MeanSquaredError();
  const auto train_step = [&](const Tensor& x, const Tensor& y) {
    Tensors losses;
    std::vector<Tensors> grads;
    for (int i = 0; i < kNumGpus; ++i) {
      const Tensor input_slice = x[{slice(i, {}, kNumGpus)}];
      const Tensor label_slice = y[{slice(i, {}, kNumGpus)}];
      const auto on = device(gpu(i));
      GradientTape tape;
      const Tensor loss = loss_object(label_slice, models[i](input_slice));
      grads.push_back(tape.gradient(loss, models[i].trainable_variables()));
      losses.push_back(loss);
    }
    for (int i = 0; i < kNumGpus; ++i) {
      optimizers[i].apply_gradients(grads[i], models[i].trainable_variables());
    }
    return losses;
  };
  const Tensor x = inputs(), y = labels();
  for (int epoch = 0; epoch < 100; ++epoch) {
    const Tensors losses = train_step(x, y);
    const Tensor avg_loss = (losses[0] + losses[1]) * 0.5f;
    fmt::print("Epoch: {}, Loss: {}\n", epoch, avg_loss.item<float>());
  }
  print_weights(models);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return article::main_of("article_004_2", argc, argv, sensible, as_printed);
}
