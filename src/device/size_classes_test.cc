#include "device/size_classes.h"

#include <gtest/gtest.h>

#include "device/allocator.h"

namespace berth {
namespace {

TEST(SizeClasses, EverySizeFitsAndAClassBelowWouldNot) {
  for (size_t bytes = 1; bytes <= Allocator::kSmallLimit; ++bytes) {
    const int c = size_class_of(bytes);
    ASSERT_GE(c, 0) << bytes;
    ASSERT_LT(c, kNumSizeClasses) << bytes;
    ASSERT_GE(size_class_bytes(c), bytes);
    if (c > 0) {
      ASSERT_LT(size_class_bytes(c - 1), bytes);
    }
  }
}

TEST(SizeClasses, WasteAtMostAQuarterAboveFourUnits) {
  for (size_t bytes = 257; bytes <= Allocator::kSmallLimit; ++bytes) {
    const size_t waste = size_class_bytes(size_class_of(bytes)) - bytes;
    ASSERT_LE(4 * waste, bytes) << bytes;
  }
  for (size_t bytes = 1; bytes <= 256; ++bytes) {
    ASSERT_LT(size_class_bytes(size_class_of(bytes)) - bytes, 64u) << bytes;
  }
}

TEST(SizeClasses, KeepBlocksAlignedAndEndAtTheLimit) {
  for (int c = 0; c < kNumSizeClasses; ++c) {
    EXPECT_EQ(size_class_bytes(c) % Allocator::kAlignment, 0u) << c;
    EXPECT_EQ(size_class_of(size_class_bytes(c)), c);
  }
  EXPECT_EQ(size_class_bytes(kNumSizeClasses - 1), Allocator::kSmallLimit);
  EXPECT_EQ(size_class_of(0), 0);
}

}  // namespace
}  // namespace berth
