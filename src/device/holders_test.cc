#include "device/holders.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fresh_process_testing.h"
#include "berth/errors.h"
#include "device/allocator.h"
#include "device/testing.h"

namespace berth {
namespace {

using test::TestDevice;

constexpr size_t kMegabyte = size_t{1} << 20;

std::string error_of(Allocator& a, size_t bytes) {
  try {
    BlockRef::adopt(a.allocate(bytes));
  } catch (const errors::ResourceExhausted& e) {
    return e.what();
  }
  return "it was given";
}

BlockRef held(Allocator& a, size_t bytes, const char* name) {
  BlockRef block = BlockRef::adopt(a.allocate(bytes));
  if (name != nullptr) name_holder(block.get(), name);
  return block;
}

TEST(Holders, AFullDeviceNamesThemTheLargestFirst) {
  TestDevice device(48 * kMegabyte);
  Allocator& a = device.allocator();
  const BlockRef one = held(a, 2 * kMegabyte, "MatMul");
  const BlockRef kernel = held(a, 5 * kMegabyte, "variable 'dense/kernel'");
  const BlockRef two = held(a, 2 * kMegabyte, "MatMul");
  const BlockRef nobody = held(a, 3 * kMegabyte, nullptr);
  const BlockRef small = held(a, 100, "never seen");
  const std::string m = error_of(a, 40 * kMegabyte);
  const std::string lines =
      "\n  5 MiB held by variable 'dense/kernel'"
      "\n  4 MiB held by MatMul (2 blocks)"
      "\n  3 MiB held by other tensors"
      "\n  32 KiB held by blocks of 1 MiB and less";
  EXPECT_NE(m.find(lines), m.npos) << m;
  // Segments of 6 MiB, an eighth of the limit, hold 2 + 2, 5 and 3.
  EXPECT_NE(m.find("the largest free block has 3 MiB"), m.npos) << m;
  EXPECT_NE(m.find("raise the limit"), m.npos) << m;
}

TEST(Holders, ANameEndsWithItsBlock) {
  TestDevice device(8 * kMegabyte);
  Allocator& a = device.allocator();
  held(a, 6 * kMegabyte, "gone");
  const BlockRef again = BlockRef::adopt(a.allocate(6 * kMegabyte));
  const std::string m = error_of(a, 6 * kMegabyte);
  EXPECT_EQ(m.find("gone"), m.npos) << m;
  EXPECT_NE(m.find("6 MiB held by other tensors"), m.npos) << m;
}

TEST(Holders, TenNamesAreSixLinesAndOneForTheOthers) {
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back("op " + std::to_string(i));
  std::vector<Holder> blocks;
  for (size_t i = 0; i < 10; ++i) {
    blocks.push_back({names[i].c_str(), (10 - i) * kMegabyte});
  }
  const std::string text = holders_text(blocks);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  EXPECT_NE(text.find("\n  5 MiB held by op 5\n"), text.npos) << text;
  EXPECT_NE(text.find("\n  10 MiB held by 4 more names (4 blocks)"), text.npos)
      << text;
}

// The source, not a limit, has no more.
class EmptySource final : public MemorySource {
 public:
  std::byte* reserve(size_t) override { return nullptr; }
  void release(std::byte*, size_t) override {}
  bool host_addressable() const override { return false; }
};

TEST(Holders, ADriverThatRefusesIsNoMatterOfTheLimit) {
  TestDevice device;
  Allocator a(&device, std::make_unique<EmptySource>(), 0);
  const std::string m = error_of(a, 2 * kMegabyte);
  EXPECT_NE(m.find("end what else uses its memory"), m.npos) << m;
  EXPECT_EQ(m.find("raise the limit"), m.npos) << m;
}

TEST(Holders, LastingNamesAreKeptOnceAndNotWithoutEnd) {
  const std::string text = "variable 'w'";
  const char* name = lasting_name(text, "");
  EXPECT_EQ(name, lasting_name(std::string(text), ""));
  EXPECT_EQ(name, text);
  const char* last = nullptr;
  for (int i = 0; i < 10000; ++i) {
    last = lasting_name("name " + std::to_string(i), "too many");
  }
  EXPECT_STREQ(last, "too many");
  EXPECT_EQ(name, lasting_name(text, ""));
}

TEST(HoldersThreads, NamesAreWrittenWhileTheyAreRead) {
  TestDevice device(64 * kMegabyte);
  Allocator& a = device.allocator();
  std::thread names([&] {
    for (int i = 0; i < 300; ++i)
      held(a, 2 * kMegabyte, i % 2 ? "odd" : "even");
  });
  for (int i = 0; i < 30; ++i) {
    EXPECT_NE(error_of(a, 65 * kMegabyte).find("out of memory"),
              std::string::npos);
  }
  names.join();
}

}  // namespace
}  // namespace berth
