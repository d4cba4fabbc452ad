#include "device/memory_space.h"

#include <gtest/gtest.h>

#include "device/testing.h"

namespace berth {
namespace {

DeviceName named(const char* type, int id, int task = 0) {
  return {"worker", 0, task, type, id};
}

TEST(MemorySpace, IsOneForTheCoreSetsOfATask) {
  EXPECT_EQ(make_memory_space(named("CPU", 0), {}, nullptr),
            make_memory_space(named("CPU", 1), {}, nullptr));
  EXPECT_EQ(memory_of(named("CPU", 0)), memory_of(named("CPU", 1)));
}

TEST(MemorySpace, IsNeverSharedByTwoTasks) {
  const MemorySpace* here = make_memory_space(named("CPU", 0, 0), {}, nullptr);
  const MemorySpace* there = make_memory_space(named("CPU", 0, 1), {}, nullptr);
  EXPECT_NE(here, there);
  EXPECT_NE(here->id, there->id);
  EXPECT_NE(here->name, there->name);
  EXPECT_EQ(here->task.task, 0);
  EXPECT_EQ(there->task.task, 1);
  EXPECT_NE(memory_of(named("CPU", 0, 0)), memory_of(named("CPU", 0, 1)));
}

TEST(MemorySpace, OfAnAcceleratorIsItsOwnAndReachesTheHostAndItsPeers) {
  test::TestDevice owner;
  const auto own = [&](int id, int peers) {
    return make_memory_space(named("GPU", id),
                             {.of_host = false, .peers = peers}, &owner);
  };
  const MemorySpace* host = make_memory_space(named("CPU", 0), {}, nullptr);
  const MemorySpace *a = own(0, 7), *b = own(1, 7), *c = own(2, 8),
                    *d = own(3, 0), *e = own(4, 0);
  EXPECT_FALSE(a->host_addressable);
  EXPECT_EQ(a->device, &owner);
  EXPECT_EQ(a->name, "/job:worker/replica:0/task:0/device:GPU:0");
  EXPECT_TRUE(a->reaches(*a) && a->reaches(*host) && a->reaches(*b));
  EXPECT_FALSE(a->reaches(*c));
  EXPECT_FALSE(d->reaches(*e)) << "0 is nobody's number";
  EXPECT_FALSE(host->reaches(*a));
}

TEST(MemorySpace, OfPinnedMemoryIsTheHostsToTouch) {
  EXPECT_TRUE(pinned_memory().pinned);
  EXPECT_TRUE(pinned_memory().host_addressable);
  const MemorySpace* host = make_memory_space(named("CPU", 0), {}, nullptr);
  EXPECT_TRUE(host->reaches(pinned_memory()));
}

}  // namespace
}  // namespace berth
