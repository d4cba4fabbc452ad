// debugging::enable_check_numerics() in the compiled steps of strategies.

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using fresh_process::refuses;

void named(const std::vector<std::string>& devices) {
  const distribute::MirroredStrategy strategy({.devices = devices});
  auto scope = strategy.scope();
  auto model = Sequential({Dense(8, {.activation = "relu"}), Dense(3)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = numbers({8, 6}), y = numbers({8, 3});
  const FitOptions once{.batch_size = 8,
                        .verbose = 0,
                        .shuffle = false,
                        .on_nan = OnNaN::kIgnore};
  model.fit(x, y, once);  // the plan is there before it is looked into
  const Tensor large = x * 1e38f;
  debugging::enable_check_numerics();
  model.fit(x, y, once);  // finite
  // Once: on devices with a queue, a step that failed leaves variables torn.
  refuses<errors::InvalidArgument>([&] { model.fit(large * 1.0f, y, once); },
                                   "Inf among 12 values; input 0 has");
  debugging::disable_check_numerics();
}

void on_core_sets() { named(cpus(2)); }
TEST(StrategyNumerics, CoreSetsNameTheOpOfTheCompiledStep) {
  IN_A_FRESH_PROCESS(on_core_sets());
}

void on_gpus() { named(gpus(2)); }
TEST(StrategyNumerics, SimulatedGpusNameTheOpOfTheCompiledStep) {
  IN_A_FRESH_PROCESS(on_gpus());
}

}  // namespace
}  // namespace berth::keras
