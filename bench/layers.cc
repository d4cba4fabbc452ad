// The training step of a transformer block that is divided by heads, columns
// and rows over two core sets, against one device of both.

#include <algorithm>

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kWidth = 256, kTokens = 64, kBatch = 16;

keras::Model block() {
  const keras::KerasTensor x = keras::Input({kTokens, kWidth});
  keras::KerasTensor h = keras::LayerNormalization()(x);
  h = keras::MultiHeadAttention(8, kWidth / 8, {.name = "attention"})({h, h});
  const keras::KerasTensor middle = keras::Add()({x, h});
  h = keras::LayerNormalization()(middle);
  h = keras::Dense(4 * kWidth, {.activation = "gelu", .name = "up"})(h);
  h = keras::Dense(kWidth, {.name = "down"})(h);
  return keras::Model(x, keras::Add()({middle, h}));
}

distribute::ModelParallel over_two_core_sets() {
  using distribute::Mesh;
  distribute::LayoutMap map(Mesh({{"model", 2}}, {"/CPU:0", "/CPU:1"}));
  map["attention/(query|key|value)/kernel"] = {"", "model", ""};
  map["attention/(query|key|value)/bias"] = {"model", ""};
  map["attention/attention_output/kernel"] = {"model", "", ""};
  map["up/kernel"] = {"", "model"};
  map["up/bias"] = {"model"};
  map["down/kernel"] = {"model", ""};
  return distribute::ModelParallel(map);
}

Timing time_step(bool split, double seconds) {
  std::optional<distribute::ModelParallel> strategy;
  std::optional<distribute::StrategyGuard> scope;
  if (split) {
    config::set_device_list("CPUx2");
    strategy = over_two_core_sets();
    scope.emplace(strategy->core(), Site::here());
  }
  keras::Model model = block();
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = random::normal({kBatch, kTokens, kWidth});
  model.train_on_batch(x, x);
  return measure([&] { model.train_on_batch(x, x); }, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(2)) return skip("layers", 2, "fewer than 2 cores");
  constexpr int kRounds = 4;
  Timing one, two;
  one.best = two.best = 1e9;
  for (int i = 0; i < kRounds; ++i) {  // in turn: both see the same minutes
    const Timing a =
        in_a_process([&] { return time_step(false, args.seconds / kRounds); });
    const Timing b =
        in_a_process([&] { return time_step(true, args.seconds / kRounds); });
    if (a.best < one.best) one = a;
    if (b.best < two.best) two = b;
  }
  Line("layers", 2)
      .timing(two, "ms", 1e3)
      .add("one_device_ms", one.best * 1e3)
      .add("over_one_device", two.best / one.best)
      .print();
  return 0;
}
