#include "base/bytes_text.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(BytesText, CountsBytesOneByOneBelowAKibibyte) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1), "1 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
}

TEST(BytesText, TakesTheUnitThatKeepsTheNumberBelow1024) {
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(1 << 22), "4 MiB");
  EXPECT_EQ(bytes_text((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(bytes_text(int64_t{5} << 40), "5 TiB");
  EXPECT_EQ(bytes_text(int64_t{5} << 52), "20480 TiB");
}

}  // namespace
}  // namespace berth
