#include "device/memory_snapshot.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "berth/errors.h"
#include "device/idle_memory.h"
#include "device/testing.h"

namespace berth {
namespace {

using test::TestDevice;
using State = MemorySnapshot::State;

constexpr size_t kMebi = size_t{1} << 20;

BlockRef block_of(Allocator& a, size_t bytes, const char* name, int line) {
  BlockRef block = BlockRef::adopt(a.allocate(bytes));
  name_holder(block.get(), name, {"/home/me/train.cc", line});
  return block;
}

size_t count(const MemorySnapshot& s, State state) {
  size_t n = 0;
  for (const auto& segment : s.segments) {
    for (const auto& p : segment.pieces) n += p.state == state;
  }
  return n;
}

TEST(MemorySnapshot, HasEveryBlockWithoutGaps) {
  TestDevice device(64 * kMebi);
  Allocator& a = device.allocator();
  const BlockRef large = block_of(a, 3 * kMebi, "MatMul", 7);
  const BlockRef small = block_of(a, 200, "Relu", 8);
  const MemorySnapshot s = memory_snapshot(a);
  size_t all = 0;
  for (const auto& segment : s.segments) {
    size_t at = 0;
    for (const auto& p : segment.pieces) {
      EXPECT_EQ(p.offset, at);
      at += p.bytes;
    }
    EXPECT_EQ(at, segment.bytes);
    all += segment.bytes;
  }
  EXPECT_EQ(all, s.info.reserved_bytes);
  EXPECT_EQ(count(s, State::kLive), 2u);
  const auto holders = holders_of(s);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].name, "MatMul");
  EXPECT_EQ(holders[0].bytes, 3 * kMebi);
  EXPECT_EQ(holders[0].site.line, 7);
  EXPECT_EQ(holders[1].name, "Relu");
  EXPECT_EQ(holders[1].bytes, 256u);
}

TEST(MemorySnapshot, SaysHowFreeMemoryIsSplit) {
  TestDevice device(64 * kMebi);
  Allocator& a = device.allocator();
  std::vector<BlockRef> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(block_of(a, 2 * kMebi, "a", i));
  a.empty_cache();
  blocks[0] = {};
  blocks[2] = {};
  const MemorySnapshot s = memory_snapshot(a);  // a segment of 8 MiB
  EXPECT_EQ(s.free_bytes(), 4 * kMebi);
  EXPECT_EQ(s.largest_free_bytes(), 2 * kMebi);
  EXPECT_DOUBLE_EQ(s.fragmentation(), 0.5);
}

TEST(MemorySnapshot, WhatWasGivenBackIsFree) {
  TestDevice device;
  Allocator& a = device.allocator();
  block_of(a, 200, "Relu", 8);
  const BlockRef idle = block_of(a, 3 * kMebi, "an arena", 0);
  count_idle(a, *idle.get(), true);
  const MemorySnapshot s = memory_snapshot(a);
  EXPECT_EQ(count(s, State::kLive), 0u);
  EXPECT_EQ(count(s, State::kIdle), 1u);
  EXPECT_TRUE(holders_of(s).empty());
  count_idle(a, *idle.get(), false);
  EXPECT_EQ(holders_of(memory_snapshot(a)).size(), 1u);
  // Its next owner has not said who he is.
  const BlockRef again = BlockRef::adopt(a.allocate(200));
  EXPECT_EQ(holders_of(memory_snapshot(a))[1].name, "other tensors");
}

TEST(MemorySnapshot, AnArenaIsWhatLivesInIt) {
  TestDevice device;
  Allocator& a = device.allocator();
  const char* name = lasting_name("the arena of plan 'test'", "plans");
  const BlockRef arena = BlockRef::adopt(a.allocate(4 * kMebi));
  name_holder(arena.get(), name);
  set_holder_parts(name, {{"dense/MatMul", {"/m.cc", 3}, 0, 3 * kMebi},
                          {"Relu", {"/m.cc", 4}, 3 * kMebi, kMebi / 2}});
  const auto holders = holders_of(memory_snapshot(a));
  ASSERT_EQ(holders.size(), 3u);
  EXPECT_EQ(holders[0].name, "dense/MatMul");
  EXPECT_EQ(holders[0].site.line, 3);
  EXPECT_EQ(holders[1].bytes + holders[2].bytes, kMebi);
}

TEST(MemorySnapshot, PeaksSayWhoHeldMost) {
  TestDevice device;
  Allocator& a = device.allocator();
  track_memory_peaks(true);
  {
    const BlockRef first = block_of(a, 4 * kMebi, "first", 1);
    const BlockRef second = block_of(a, 8 * kMebi, "second", 2);
  }
  const BlockRef later = block_of(a, 2 * kMebi, "later", 3);
  const auto holders = holders_at_peak(a);
  track_memory_peaks(false);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].name, "second");
  EXPECT_EQ(holders[1].name, "first");
  a.reset_peak();
  EXPECT_EQ(holders_at_peak(a)[0].name, "later");
}

std::string full_error(Allocator& a, size_t bytes) {
  try {
    BlockRef::adopt(a.allocate(bytes));
  } catch (const errors::ResourceExhausted& e) {
    return e.what();
  }
  return "it was given";
}

TEST(MemorySnapshot, AFullDeviceWritesOneWhereItIsAsked) {
  unsetenv("BERTH_MEMORY_SNAPSHOT");
  unsetenv("BERTH_PROFILE");
  TestDevice device(16 * kMebi);
  Allocator& a = device.allocator();
  const BlockRef block = block_of(a, 6 * kMebi, "variable '\"w\"'", 7);
  const std::string plain = full_error(a, 20 * kMebi);
  EXPECT_NE(plain.find("BERTH_MEMORY_SNAPSHOT=FILE.json"), plain.npos) << plain;

  const std::string path = testing::TempDir() + "/snapshot_test.json";
  setenv("BERTH_MEMORY_SNAPSHOT", path.c_str(), 1);
  const std::string m = full_error(a, 20 * kMebi);
  unsetenv("BERTH_MEMORY_SNAPSHOT");
  EXPECT_NE(m.find("berth report " + path), m.npos) << m;
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["memory_snapshot"], "CPU:7");
  EXPECT_EQ(json["asked_bytes"], 20 * kMebi);
  EXPECT_EQ(json["limit_bytes"], 16 * kMebi);
  const auto& first = json["segments"][0]["blocks"][0];
  EXPECT_EQ(first["holder"], "variable '\"w\"'");
  EXPECT_EQ(first["line"], "/home/me/train.cc:7");
  EXPECT_EQ(first["state"], "live");
  std::filesystem::remove(path);

  snapshot_path("/no/such/folder/s.json");
  const std::string wrong = full_error(a, 20 * kMebi);
  snapshot_path("");
  EXPECT_NE(wrong.find("cannot be written"), wrong.npos) << wrong;
  EXPECT_NE(wrong.find("out of memory"), wrong.npos) << wrong;
}

TEST(MemorySnapshot, BesideTheProfileOfTheProcess) {
  TestDevice device(8 * kMebi);
  const std::string folder = testing::TempDir();
  setenv("BERTH_PROFILE", (folder + "/fit.pftrace").c_str(), 1);
  const std::string m = full_error(device.allocator(), 20 * kMebi);
  unsetenv("BERTH_PROFILE");
  const std::string path = folder + "/fit.memory.json";
  EXPECT_NE(m.find(path), m.npos) << m;
  EXPECT_TRUE(std::filesystem::remove(path));
}

TEST(MemorySnapshotThreads, BlocksComeAndGoWhileTheyAreListed) {
  TestDevice device;
  Allocator& a = device.allocator();
  std::thread blocks([&] {
    for (int i = 0; i < 300; ++i) {
      block_of(a, i % 2 ? 2 * kMebi : 500, "a", i);
    }
  });
  for (int i = 0; i < 30; ++i) memory_snapshot(a);
  blocks.join();
}

}  // namespace
}  // namespace berth
