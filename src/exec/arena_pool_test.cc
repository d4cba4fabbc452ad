// Arenas that plans share.

#include "exec/arena_pool.h"

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"

namespace berth {
namespace {

// Recordings of a plan hold addresses.
TEST(ArenaPool, GivesAPlanTheArenaThatItHadBefore) {
  Device& host = DeviceManager::get().host();
  Program p;
  p.devices = {&host};
  p.arena_bytes = {8192};
  ArenaPool& pool = ArenaPool::get();
  BlockRef a = pool.take(p, 0, nullptr), b = pool.take(p, 0, nullptr);
  const std::byte *at_a = a->data, *at_b = b->data;
  ASSERT_NE(at_a, at_b);
  pool.give_back(host, std::move(a));
  pool.give_back(host, std::move(b));
  a = pool.take(p, 0, at_a);
  b = pool.take(p, 0, at_b);
  EXPECT_EQ(a->data, at_a);
  EXPECT_EQ(b->data, at_b);
  pool.give_back(host, std::move(a));
  pool.give_back(host, std::move(b));
}

void gpu_of_8_mb() {
  config::set_simulated_devices("GPUx1");
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0], {{.memory_limit_mb = 8}});
}

// Of 8 MB the plan keeps 2 for its argument, and 2 that wait for its next run.
void idle_arenas() {
  gpu_of_8_mb();
  const auto on = device("/GPU:0");
  const auto step = function([](const Tensor& x) {
    return math::reduce_max(math::cumsum(x));  // sums of 2 MB
  });
  const auto sum = [&] { return step(fill({1 << 19}, 2)).item<float>(); };
  fresh_process::check(sum() == 2 << 19, "a step");
  {
    const Tensor large = fill({5 << 18}, 1);
    fresh_process::check(math::reduce_sum(large).item<float>() == 5 << 18,
                         "as large as what is left");
  }
  fresh_process::check(sum() == 2 << 19, "a step in another arena");
}

TEST(ArenaPool, IdleArenasGiveWayWhenMemoryIsFull) {
  IN_A_FRESH_PROCESS(idle_arenas());
}

}  // namespace
}  // namespace berth
