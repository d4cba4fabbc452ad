// CommunicationOptions::timeout_seconds: a step that takes longer fails with an
// error that names the missing tasks.

#include <gtest/gtest.h>

#include "backends/sim/faults.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "distribute/strategy/strategy_testing.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using fresh_process::refuses;

// Long for a step, short for a test.
const StrategyOptions kInTime{
    .cross_device_ops = CrossDeviceOps::kRing,
    .communication = {.bytes_per_pack = 1 << 10, .timeout_seconds = 0.3}};

Device& gpu(int i) {
  return DeviceManager::get().lookup(
      DeviceName::parse("/GPU:" + std::to_string(i)));
}

void end_faults() {
  for (int i = 0; i < 2; ++i) sim::clear_faults(gpu(i));
  for (int i = 0; i < 2; ++i) gpu(i).reset_error();
}

void run_hangs() {
  two(true);
  const MirroredStrategy strategy(kInTime);
  const auto v = [&] {
    const auto scope = strategy.scope();
    return Variable(zeros({3}), {.aggregation = VariableAggregation::kSum});
  }();
  const auto step = berth::function([&](const Tensor& x) {
    v.assign_add(x * ones({3}));
    return x * 2.f;
  });
  const PerReplica x = pair_of(constant(1.f), constant(2.f));
  strategy.run(step, x);
  sim::hang_device(gpu(1));
  refuses<errors::DeadlineExceeded>([&] { strategy.run(step, x); },
                                    "within 0.3 s: GPU:1 has not ended");
  // Goes on, and writes for a run that has failed.
  end_faults();
  refuses<errors::FailedPrecondition>([&] { v.value(); }, "half-made");
  v.assign(ones({3}));
  strategy.run(step, x);
  check(values(v.value()) == std::vector<float>(3, 4), "goes on");
}

TEST(Deadline, NamesTheDeviceThatHangsInRun) { in_a_fresh_process(&run_hangs); }

void fit_hangs() {
  two(true);
  const MirroredStrategy strategy(kInTime);
  const auto scope = strategy.scope();
  keras::Sequential model({keras::Dense(4), keras::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = ones({8, 3}), y = ones({8, 1});
  const keras::FitOptions once{.epochs = 1, .batch_size = 8, .verbose = 0};
  model.fit(x, y, once);
  sim::hang_device(gpu(1), 4);
  refuses<errors::DeadlineExceeded>([&] { model.fit(x, y, once); }, "GPU:1");
  end_faults();
}

TEST(Deadline, NamesTheDeviceThatHangsInFit) { in_a_fresh_process(&fit_hangs); }

// Core sets do not hang, but may be slow.
void cores_take_long() {
  two(false);
  const MirroredStrategy strategy(
      {.communication = {.timeout_seconds = 0.02}, .slices = 0});
  const auto slow = berth::function([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = matmul(y, x) * 1e-3f;
    return y;
  });
  const Tensor large = ones({1200, 1200});
  refuses<errors::DeadlineExceeded>(
      [&] { strategy.run(slow, pair_of(large, large)); }, "CPU:");
  // Devices are usable again once they have finished their pending work.
  for (Device* d : DeviceManager::get().devices()) d->reset_error();
  for (int tries = 0;; ++tries) {
    try {
      const auto z = strategy.run([](const Tensor& x) { return x + 1.f; },
                                  pair_of(constant(1.f), constant(2.f)));
      check(values(z[1]) == std::vector<float>{3}, "works on");
      return;
    } catch (const errors::DeadlineExceeded&) {
      check(tries < 100, "small steps are in time");  // the machine may be busy
    }
  }
}

TEST(Deadline, NamesCoresThatTakeTooLong) {
  in_a_fresh_process(&cores_take_long);
}

}  // namespace
}  // namespace berth::distribute
