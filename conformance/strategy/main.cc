// One process for all rows: four CPU devices that share the cores, so that
// this runs on two, and four accelerators: parts of the first GPU where one
// is, else simulated.

#include <gtest/gtest.h>

#include "berth/config.h"
#include "berth/multi_worker.h"
#include "conformance/strategy/training.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  berth::config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"}, {{.workers = 2, .shared = true},
                                          {.workers = 1, .shared = true},
                                          {.workers = 2, .shared = true},
                                          {.workers = 1, .shared = true}});
  const auto gpus = berth::config::list_physical_devices("GPU");
  if (gpus.empty()) {
    berth::config::set_simulated_devices("GPUx4");
  } else {
    constexpr int64_t kMb = 256;
    berth::config::set_logical_device_configuration(gpus[0],
                                                    {{.memory_limit_mb = kMb},
                                                     {.memory_limit_mb = kMb},
                                                     {.memory_limit_mb = kMb},
                                                     {.memory_limit_mb = kMb}});
  }
  berth::strategy_suite::listen();
  const int status = RUN_ALL_TESTS();
  using namespace berth::distribute;
  const auto resolver = cluster_resolver::from_environment();
  if (!resolver.alone()) {  // the others may have rows to go
    MultiWorkerMirroredStrategy(resolver, {.devices = {"/CPU:0"}}).leave(300);
  }
  return status;
}
