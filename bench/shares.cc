// Devices of 1 + 3 cores: steps of an MLP with automatic shares beside steps
// with equal ones, in turns in one process.

#include <string>

#include "bench_common.h"
#include "berth/berth.h"
#include "berth/distribute.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kCores = 4;
constexpr int64_t kBatch = 512, kIn = 784;

// A model that is trained under a strategy of its own.
struct Trained {
  explicit Trained(const distribute::Shares& shares)
      : strategy({"/CPU:0", "/CPU:1"}, {.shares = shares}),
        model(make(strategy)) {}

  static keras::Sequential make(const distribute::Strategy& strategy) {
    const auto scope = strategy.scope();
    keras::Sequential m({keras::Dense(512, {.activation = "relu"}),
                         keras::Dense(512, {.activation = "relu"}),
                         keras::Dense(10)});
    m.build({-1, kIn});
    m.compile({.optimizer = "sgd",
               .loss = keras::losses::SparseCategoricalCrossentropy(
                   {.from_logits = true})});
    return m;
  }
  void step(const Tensor& x, const Tensor& y) { model.train_on_batch(x, y); }

  distribute::MirroredStrategy strategy;
  keras::Sequential model;
};

std::string text(const std::vector<int64_t>& examples) {
  std::string s;
  for (const int64_t n : examples) {
    s += (s.empty() ? "" : ":") + std::to_string(n);
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(kCores)) {
    return skip("shares", kCores, "fewer than 4 cores");
  }
  unsetenv("HOME");  // nothing that other runs measured
  unsetenv("XDG_CACHE_HOME");
  unsetenv("BERTH_CACHE_DIR");
  const std::vector<int> cores = allowed_cores();
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.cores = std::to_string(cores[0])},
       {.cores = std::to_string(cores[1]) + "," + std::to_string(cores[2]) +
                 "," + std::to_string(cores[3])}});
  const Tensor x = random::normal({kBatch, kIn});
  const Tensor y = zeros({kBatch}, int32);
  Trained equal{distribute::Shares()}, automatic{distribute::Auto};
  for (int i = 0; i < 30; ++i) equal.step(x, y);
  // Until slices have come to rest.
  for (int i = 0; i < 600; ++i) automatic.step(x, y);
  std::vector<double> equal_s, automatic_s;
  const double begin = now_seconds();
  while (equal_s.size() < 5 || now_seconds() - begin < args.seconds) {
    equal_s.push_back(measure_blocks([&] { equal.step(x, y); }, 0.01, 4).best);
    automatic_s.push_back(
        measure_blocks([&] { automatic.step(x, y); }, 0.01, 4).best);
  }
  const Timing e = summarize(equal_s), a = summarize(automatic_s);
  Line("shares", kCores)
      .add("devices", "1 + 3 cores")
      .timing(a, "us", 1e6)
      .add("equal_best_us", e.best * 1e6)
      .add("equal_median_us", e.median * 1e6)
      .add("examples", text(automatic.strategy.examples(kBatch)))
      .add("speed_up", e.best / a.best)
      .add("median_speed_up", e.median / a.median)
      .print();
  return 0;
}
