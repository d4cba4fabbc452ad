// A model split by layers over devices trains bit for bit like one device of
// the same backend, and sends what its borders say and nothing else. Devices
// are configured once per process, so each test runs in one of its own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>

#include "backends/sim/sim.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "device/gpu_testing.h"

namespace berth {
namespace {

using fresh_process::check;

using Floats = std::vector<float>;
using keras::Conv2D;
using keras::Dense;

// Two devices of one backend that the layers are split over.
struct Pair {
  std::string first, second;
};

Pair two_gpus() {
  test::use_gpus(2);
  return {"/GPU:0", "/GPU:1"};
}

// Two equal workers, so that this runs on any machine. Without accelerators:
// what nobody asked for would go there.
Pair two_cpus() {
  test::use_no_gpus();
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 2, .shared = true}, {.workers = 2, .shared = true}});
  return {"/CPU:0", "/CPU:1"};
}

void seed_devices(uint64_t seed) {
  for (Device* d : DeviceManager::get().devices()) {
    if (d->simulated()) sim::set_seed(*d, seed);
  }
}

using MakeModel =
    std::function<keras::Model(const std::string& a, const std::string& b)>;

// A value that the forward pass sends between the devices: its elements and
// how many gradients of that size come back: one from each op that reads it
// over there, as contributions are summed where the value is.
struct Sent {
  int64_t elements;
  int readers = 1;
};

// What is trained: a model whose layers are on `a` and `b`, and its data.
struct Task {
  MakeModel model;
  Tensor x, y;
  std::vector<Sent> sent;
};

Tensor counted(const Shape& shape, float scale) {
  Floats v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = scale * static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
  }
  return constant(std::span<const float>(v), shape);
}

Tensor labels(int64_t n) {
  Floats v(static_cast<size_t>(n) * 10);
  for (int64_t i = 0; i < n; ++i) v[static_cast<size_t>(i * 10 + i % 10)] = 1;
  return constant(std::span<const float>(v), {n, 10});
}

keras::Layer dense(const std::string& where, int units,
                   const char* activation) {
  const auto on = device(where);
  return Dense(units, {.activation = activation});
}

// Article 000, example 1: 128 and 10 units on one device, 64 on the other.
Task article_000_1() {
  return {[](const std::string& a, const std::string& b) {
            const auto input = keras::Input({784});
            auto h = dense(a, 128, "relu")(input);
            h = dense(b, 64, "relu")(h);
            return keras::Model(input, dense(a, 10, "softmax")(h));
          },
          counted({32, 784}, 0.01f),
          labels(32),
          {{32 * 128}, {32 * 64}}};
}

// Article 001, example 3, as a model that trains.
Task article_001_3() {
  return {[](const std::string& a, const std::string& b) {
            return keras::Sequential(
                {dense(a, 128, "relu"), dense(b, 10, "softmax")});
          },
          counted({64, 100}, 0.02f),
          labels(64),
          // The probabilities go to the loss on the first device, which
          // divides them by their sum.
          {{64 * 128}, {64 * 10, 2}}};
}

// Convolution and batch norm on one device, the rest on the other.
Task conv_net() {
  return {[](const std::string& a, const std::string& b) {
            std::vector<keras::Layer> layers;
            {
              const auto on = device(a);
              layers = {Conv2D(8, 3, {.padding = "same"}),
                        keras::BatchNormalization(), keras::ReLU(),
                        keras::MaxPooling2D(2)};
            }
            const auto on = device(b);
            layers.push_back(keras::Dropout(0.25));
            layers.push_back(keras::Flatten());
            layers.push_back(Dense(10, {.activation = "softmax"}));
            return keras::Sequential(layers);
          },
          counted({16, 8, 8, 3}, 0.02f),
          labels(16),
          {{16 * 4 * 4 * 8}, {16 * 10, 2}}};
}

struct Trained {
  Floats losses;
  std::vector<Floats> weights;
  bool operator==(const Trained&) const = default;
};

Trained result(Floats losses, const keras::Model& model) {
  Trained t{std::move(losses), {}};
  for (const Tensor& w : model.get_weights()) {
    t.weights.push_back(w.to_vector<float>());
  }
  return t;
}

struct Work {
  int transfers = 0;
  size_t bytes = 0;
  std::string text;  // the placed graph
};

enum class Loop { kFit, kCustom };

keras::Optimizer optimizer(const std::string& name) {
  if (name == "sgd") return keras::SGD(0.1);
  return keras::Adam(0.01);
}

constexpr int kSteps = 5;
constexpr int kSlices = 4;

// Trains a fresh model on `a` and `b`.
Trained train(const Task& task, const std::string& a, const std::string& b,
              const std::string& optimizer_name, Loop loop,
              Work* work = nullptr) {
  random::set_seed(5);
  keras::Model model = task.model(a, b);
  model.build(task.x.shape());
  const auto opt = optimizer(optimizer_name);
  const auto loss_of = keras::losses::CategoricalCrossentropy();
  Floats losses;
  if (loop == Loop::kFit) {
    model.compile({.optimizer = opt, .loss = loss_of, .slices = kSlices});
    const auto h = model.fit(task.x, task.y,
                             {.epochs = kSteps,
                              .batch_size = task.x.shape()[0],
                              .verbose = 0,
                              .shuffle = false});
    for (double l : h.history.at("loss")) {
      losses.push_back(static_cast<float>(l));
    }
    if (work) {
      const auto info = model.train_plan_info();
      *work = {info.transfers, info.copied_bytes,
               model.train_plan_text("place")};
    }
    return result(losses, model);
  }
  auto step = function(
      [&](const Tensor& x, const Tensor& y) {
        GradientTape tape;
        const Tensor loss = loss_of(y, model(x, true));
        const auto variables = model.trainable_variables();
        opt.apply_gradients(tape.gradient(loss, variables), variables);
        return loss;
      },
      {.slices = kSlices});
  for (int i = 0; i < kSteps; ++i) {
    losses.push_back(step(task.x, task.y).item<float>());
  }
  if (work) {
    const auto info = step.plan_info();
    *work = {info.transfers, info.copied_bytes, step.text("place")};
  }
  return result(losses, model);
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

// What every step sends besides activations and gradients: the optimizer's
// scalars, from where its first variable is to the other device. SGD has the
// rate, Adam also the powers of its two betas.
int scalars(const std::string& optimizer) { return optimizer == "sgd" ? 1 : 3; }

void check_sent(const Task& task, const std::string& optimizer, Loop loop,
                bool cpus, const Work& work) {
  int crossings = scalars(optimizer);
  size_t bytes = 4 * static_cast<size_t>(crossings);
  for (const Sent& s : task.sent) {
    crossings += 1 + s.readers;
    bytes += 4 * static_cast<size_t>(s.elements * (1 + s.readers));
  }
  const std::string what = optimizer + (loop == Loop::kFit ? ", fit" : "");
  // One memory: nothing is copied.
  check(work.transfers == (cpus ? 0 : crossings),
        what + ": transfers " + std::to_string(work.transfers) + work.text);
  check(work.bytes == (cpus ? 0 : bytes),
        what + ": bytes " + std::to_string(work.bytes));
  // The rate is a variable, which each device reads where it is.
  check(count(work.text, " = _HandOver(") == (cpus ? crossings - 1 : 0),
        what + ": hand-overs\n" + work.text);
}

void trains_like_one(Pair (*configure)(), Task (*make_task)(), int seeds) {
  const Pair devices = configure();
  const Task task = make_task();
  const bool cpus = devices.first[1] == 'C';
  for (const char* optimizer : {"sgd", "adam"}) {
    for (const Loop loop : {Loop::kFit, Loop::kCustom}) {
      seed_devices(0);
      const Trained one =
          train(task, devices.first, devices.first, optimizer, loop);
      check(one.losses.back() < one.losses.front(), "it learns");
      for (int seed = 0; seed < seeds; ++seed) {
        seed_devices(static_cast<uint64_t>(seed));
        Work work;
        const Trained split =
            train(task, devices.first, devices.second, optimizer, loop, &work);
        check(split == one, std::string(optimizer) +
                                ": the same bits with seed " +
                                std::to_string(seed));
        if (seed == 0) check_sent(task, optimizer, loop, cpus, work);
      }
    }
  }
}

TEST(ModelParallel, Article000Example1OnTwoGpus) {
  IN_A_FRESH_PROCESS(trains_like_one(&two_gpus, &article_000_1, 10));
}
TEST(ModelParallel, Article000Example1OnTwoCoreSets) {
  IN_A_FRESH_PROCESS(trains_like_one(&two_cpus, &article_000_1, 3));
}
TEST(ModelParallel, Article001Example3OnTwoGpus) {
  IN_A_FRESH_PROCESS(trains_like_one(&two_gpus, &article_001_3, 10));
}
TEST(ModelParallel, Article001Example3OnTwoCoreSets) {
  IN_A_FRESH_PROCESS(trains_like_one(&two_cpus, &article_001_3, 3));
}
TEST(ModelParallel, AConvNetWithBatchNormAndDropoutOnTwoGpus) {
  IN_A_FRESH_PROCESS(trains_like_one(&two_gpus, &conv_net, 10));
}
TEST(ModelParallel, AConvNetWithBatchNormAndDropoutOnTwoCoreSets) {
  IN_A_FRESH_PROCESS(trains_like_one(&two_cpus, &conv_net, 3));
}

}  // namespace
}  // namespace berth
