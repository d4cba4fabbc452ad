// Arenas that plans share.

#include "exec/arena_pool.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace berth
