#include "base/bytes_text.h"

#include <gtest/gtest.h>

#include "base/compared_bytes.h"

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

TEST(BytesText, NumbersThatDifferReadDifferently) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(compared_bytes(65536, 1 << 20), Pair("64 KiB", "1 MiB"));
  EXPECT_EQ(compared_bytes(11999, 12000), Pair("11999 B", "12000 B"));
  EXPECT_EQ(compared_bytes(4096, 4096), Pair("4 KiB", "4 KiB"));
}

}  // namespace
}  // namespace berth
