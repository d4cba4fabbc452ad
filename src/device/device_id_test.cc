#include "device/device_id.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "berth/errors.h"

namespace berth {
namespace {

TEST(DeviceId, OfEqualTextsAreEqual) {
  const std::string text = "/GPU:1";
  EXPECT_EQ(DeviceId(text), DeviceId("/GPU:1"));
  EXPECT_EQ(DeviceId(text).text(), "/GPU:1");
  // What was written is kept, though it means the same.
  EXPECT_NE(DeviceId(text), DeviceId("/device:GPU:1"));
  EXPECT_EQ(DeviceId(text).name(), DeviceId("/device:GPU:1").name());
}

TEST(DeviceId, OfNothingIsEmpty) {
  EXPECT_TRUE(DeviceId().empty());
  EXPECT_TRUE(DeviceId("").empty());
  EXPECT_EQ(DeviceId().text(), "");
  EXPECT_TRUE(DeviceId().name().empty());
  DeviceId id("/CPU:0");
  EXPECT_FALSE(id.empty());
  id.clear();
  EXPECT_EQ(id, DeviceId());
}

TEST(DeviceId, KnowsWhatItsTextSays) {
  const DeviceId cpu("/job:worker/replica:0/task:3/device:CPU:2");
  EXPECT_EQ(cpu.name().task, 3);
  EXPECT_EQ(cpu.name().id, 2);
  EXPECT_TRUE(cpu.is_cpu());
  EXPECT_FALSE(DeviceId("gpu").is_cpu());
  EXPECT_FALSE(DeviceId().is_cpu());
}

TEST(DeviceId, OfAMalformedNameThrowsWhenItIsReadOnly) {
  const DeviceId bad("/GPU:x:y");
  EXPECT_EQ(bad.text(), "/GPU:x:y");
  EXPECT_THROW(bad.name(), errors::InvalidArgument);
  EXPECT_THROW(bad.name(), errors::InvalidArgument);
}

TEST(DeviceId, IsOneForAllThreads) {
  constexpr int kThreads = 4, kNames = 500;
  std::vector<std::vector<DeviceId>> ids(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&own = ids[t]] {
      for (int i = 0; i < kNames; ++i) {
        own.emplace_back("/job:many/task:" + std::to_string(i));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::unordered_set<DeviceId> all;
  for (const auto& own : ids) {
    EXPECT_EQ(own, ids[0]);
    all.insert(own.begin(), own.end());
  }
  EXPECT_EQ(all.size(), static_cast<size_t>(kNames));
}

}  // namespace
}  // namespace berth
