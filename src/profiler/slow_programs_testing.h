// Programs that are slow for one reason each, and what to change in them. Tests
// and benchmarks only.

#ifndef BERTH_PROFILER_SLOW_PROGRAMS_TESTING_H_
#define BERTH_PROFILER_SLOW_PROGRAMS_TESTING_H_

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "profiler/analysis.h"

namespace berth::profiler::slow_programs {

struct SlowProgram {
  const char* name;
  const char* speeds;  // of two simulated devices; "": there are none
  const char* advice;  // words of it
  int line;            // of this file, that it names
  // Runs it, as it is or with the advice followed.
  std::function<Timeline(bool followed)> run;
};

// Batches are made while nothing else runs.
inline Timeline small_prefetch(bool followed) {
  using std::this_thread::sleep_for;
  using namespace std::chrono_literals;
  auto data = data::Dataset::range(20).map([](const Tensors& x) {
    sleep_for(8ms);
    return Tensors{math::cast(x[0], float32)};
  });
  if (followed) data = data.prefetch(4);
  const auto f =
      function([](const Tensor& x) { return x + x; }, {.name = "train_step"});
  f(constant(1.f));
  start();
  for (const data::Element& e : data) {
    f(e[0]);
    sleep_for(6ms);
  }
  return stop();
}
constexpr int kMapLine = __LINE__ - 15;

// A sum between two products, on another device than these.
inline Timeline reduction_elsewhere(bool followed) {
  const auto f = function(
      [followed](const Tensor& in, const Tensor& w) {
        const auto on = [](const char* where, auto fn) {
          const auto scope = device(where);
          return fn();
        };
        const Tensor x = on("/GPU:0", [&] { return matmul(in, w); });
        const Tensor s = on(followed ? "/GPU:0" : "/GPU:1", [&] {
          const Tensor y = math::reduce_sum(x, {.axis = 1, .keepdims = true});
          return math::multiply(x, y);
        });
        return on("/GPU:0", [&] { return math::reduce_sum(matmul(s, w)); });
      },
      {.name = "train_step"});
  const Tensor x = ones({512, 256}), w = ones({256, 256});
  f(x, w).to_vector<float>();
  start();
  for (int k = 0; k < 8; ++k) f(x, w).to_vector<float>();
  return stop();
}
constexpr int kReductionLine = __LINE__ - 11;

// Equal shares on devices of which one is twice as fast.
inline Timeline unequal_replicas(bool followed) {
  const distribute::MirroredStrategy strategy(
      {"/gpu:0", "/gpu:1"}, {.shares = followed ? std::vector<double>{2, 1}
                                                : std::vector<double>{1, 1}});
  const auto scope = strategy.scope();
  auto model = keras::Sequential({keras::Dense(512, {.activation = "relu"}),
                                  keras::Dense(512, {.activation = "relu"}),
                                  keras::Dense(2)});
  model.compile({.optimizer = "sgd",
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true})});
  const Tensor x = random::uniform({384 * 6, 256});
  const Tensor y = math::cast(math::reduce_sum(x, {.axis = 1}) > 128, int32);
  model.fit(x, y, {.epochs = 1, .batch_size = 384, .verbose = 0});
  start();
  model.fit(x, y, {.epochs = 1, .batch_size = 384, .verbose = 0});
  return stop();
}

inline Timeline tiny_ops(bool followed) {
  const auto step = [](const Tensor& in) {
    Tensor x = in;
    for (int k = 0; k < 60; ++k) x = math::add(math::multiply(x, 0.5f), 1.f);
    return x;
  };
  const auto f = function(step, {.name = "halves"});
  const Tensor x = ones({16});
  const auto once = [&] { return followed ? f(x) : step(x); };
  once();
  start();
  for (int k = 0; k < 50; ++k) {
    const Trace trace("train");
    once();
  }
  return stop();
}
constexpr int kTinyLine = __LINE__ - 14;

inline const std::vector<SlowProgram>& all() {
  static const std::vector<SlowProgram> programs = {
      {"prefetch", "", "end the pipeline with prefetch", kMapLine,
       small_prefetch},
      {"reduction", "1,1", "one device", kReductionLine, reduction_elsewhere},
      {"shares", "2,1", ".shares", 0, unequal_replicas},
      {"tiny", "", "function", kTinyLine, tiny_ops}};
  return programs;
}

// Two simulated devices, before any exists; the CPU alone without speeds.
inline void use_devices(const SlowProgram& program) {
  if (*program.speeds == '\0') return config::set_device_list("CPUx1");
  setenv("BERTH_SIM_SPEEDS", program.speeds, 1);
  config::set_simulated_devices("GPUx2");
}

// The first piece of advice with these words; null: none.
inline const Advice* advice_of(const Analysis& a, const SlowProgram& program) {
  for (const Advice& v : a.advice) {
    if (v.title.find(program.advice) != std::string::npos) return &v;
  }
  return nullptr;
}

}  // namespace berth::profiler::slow_programs

#endif  // BERTH_PROFILER_SLOW_PROGRAMS_TESTING_H_
