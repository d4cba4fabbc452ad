// `leave WAY NUMBER`: ends while threads of the engine and of its own work, in
// one of the ways that programs leave. It exits with 0; anything else is a
// fault of the library. NUMBER moves the moment a little.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "berth/berth.h"

namespace {

using berth::Tensor;
using berth::Tensors;
namespace keras = berth::keras;

void pause_a_little(int number) {
  std::this_thread::sleep_for(std::chrono::microseconds(700 * (number % 13)));
}

void fit_for_ever() {
  const Tensor x = berth::random::uniform({64, 8, 8, 3});
  const Tensor mean =
      berth::math::reduce_mean(x, {.axis = std::vector<int64_t>{1, 2, 3}});
  const Tensor y = berth::math::cast(mean < 0.5, berth::int32);
  auto model = keras::Sequential({keras::Conv2D(4, 3, {.activation = "relu"}),
                                  keras::Flatten(), keras::Dropout(0.1),
                                  keras::Dense(16, {.activation = "gelu"}),
                                  keras::Dense(2, {.activation = "softmax"})});
  model.compile({.optimizer = keras::Adam(0.01),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  for (;;) {
    model.fit(x, y, {.epochs = 1, .batch_size = 16, .verbose = 0});
  }
}

// Made before all that the engine makes later, and destroyed after it: until
// then the threads of the pipeline compute.
std::optional<berth::data::Iterator> g_iterator;

void leave_with_an_iterator(int number) {
  g_iterator = berth::data::Dataset::range(1 << 20)
                   .map([](const Tensors& t) -> Tensors {
                     const Tensor v = berth::math::cast(t[0], berth::float32);
                     return {berth::math::reduce_sum(
                         berth::nn::gelu(berth::fill({32, 32}, 0.5f) * v))};
                   })
                   .prefetch(4096)
                   .make_iterator();
  for (int i = 0; i < 3; ++i) g_iterator->next();
  pause_a_little(number);
  std::exit(0);
}

void leave_by_another_thread(int number) {
  std::thread([number] {
    pause_a_little(number + 6);
    std::exit(0);
  }).detach();
  fit_for_ever();
}

void leave_detached_threads(int number) {
  for (int i = 0; i < 3; ++i) std::thread(fit_for_ever).detach();
  pause_a_little(number + 6);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (way == "iterator") {
    leave_with_an_iterator(number);
  } else if (way == "exit") {
    leave_by_another_thread(number);
  } else if (way == "main") {
    leave_detached_threads(number);
  } else {
    std::cerr << "usage: leave iterator|exit|main [NUMBER]\n";
    return 2;
  }
}
