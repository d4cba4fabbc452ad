#include "place/device_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace berth {
namespace {

std::set<int32_t> numbers_of(DeviceSet s) {
  std::set<int32_t> numbers;
  for (; s; s.drop_first()) numbers.insert(s.first());
  return numbers;
}

// Compared with std::set, on both sides of a word's end.
TEST(DeviceSet, DoesWhatSetsOfNumbersDo) {
  for (const int32_t most : {8, 64, 65, 130, 4096}) {
    std::mt19937 random(static_cast<uint32_t>(most));
    const auto some = [&](std::set<int32_t>* numbers) {
      DeviceSet s;
      for (int k = 0; k < 6; ++k) {
        const auto d =
            static_cast<int32_t>(random() % static_cast<uint32_t>(most));
        numbers->insert(d);
        s |= device_bit(d);
      }
      return s;
    };
    for (int round = 0; round < 50; ++round) {
      std::set<int32_t> x, y, both, left, either;
      const DeviceSet a = some(&x), b = some(&y);
      for (const int32_t d : x) (y.contains(d) ? both : left).insert(d);
      either = x;
      either.insert(y.begin(), y.end());
      EXPECT_EQ(numbers_of(a), x);
      EXPECT_EQ(numbers_of(a & b), both);
      EXPECT_EQ(numbers_of(a & ~b), left);
      EXPECT_EQ(numbers_of(a | b), either);
      EXPECT_EQ(a.count(), static_cast<int32_t>(x.size()));
      EXPECT_EQ(a.several(), x.size() > 1);
      EXPECT_EQ(a == b, x == y);
      EXPECT_EQ((a & ~a) == 0, true);
      for (int32_t d = 0; d < most; ++d) EXPECT_EQ(a.has(d), x.contains(d));
    }
  }
}

TEST(DeviceSet, EndsNowhereWhenItIsTheRestOfOne) {
  const DeviceSet rest = ~DeviceSet::below(70);
  EXPECT_FALSE(rest.has(69));
  EXPECT_TRUE(rest.has(70));
  EXPECT_TRUE(rest.has(100'000));
  EXPECT_EQ(rest.first(), 70);
  EXPECT_EQ(~rest, DeviceSet::below(70));
  EXPECT_TRUE((rest | device_bit(1)).has(100'000));
  EXPECT_EQ(rest & DeviceSet::below(72), device_bit(70) | device_bit(71));
  EXPECT_EQ(~DeviceSet() & DeviceSet::below(4096), DeviceSet::below(4096));
}

// Sets with the same members are equal, however they were made.
TEST(DeviceSet, ComparesByWhatItHolds) {
  DeviceSet a = device_bit(3) | device_bit(200);
  a &= ~device_bit(200);
  EXPECT_EQ(a, DeviceSet(8));
  EXPECT_FALSE(a < DeviceSet(8) || DeviceSet(8) < a);
  EXPECT_LT(DeviceSet(8), device_bit(200));
  EXPECT_LT(device_bit(200), ~DeviceSet());
  EXPECT_LT(device_bit(4095), ~DeviceSet::below(4096));
  a.drop_first();
  EXPECT_FALSE(a);
}

}  // namespace
}  // namespace berth
