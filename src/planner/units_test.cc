#include "planner/units.h"

#include <gtest/gtest.h>

#include "berth/errors.h"

namespace berth {
namespace {

TEST(Units, ReadQuantities) {
  EXPECT_EQ(parse_quantity("16GiB", Quantity::kBytes), 16.0 * (1 << 30));
  EXPECT_EQ(parse_quantity("1.5 kB", Quantity::kBytes), 1500);
  EXPECT_EQ(parse_quantity("5us", Quantity::kTime), 5);
  EXPECT_EQ(parse_quantity("2s", Quantity::kTime), 2e6);
  EXPECT_DOUBLE_EQ(parse_quantity("64GB/s", Quantity::kBandwidth), 64e3);
  EXPECT_EQ(parse_quantity("19.5TFLOPS", Quantity::kFlops), 19.5e6);
}

TEST(Units, RefuseWhatIsNone) {
  for (const char* text : {"", "5", "us", "-5us", "5 parsecs", "nanus", "infus",
                           "1e400us", "5us ", "0x5us", "1e308s", "5GB/s"}) {
    EXPECT_THROW(parse_quantity(text, Quantity::kTime), errors::InvalidArgument)
        << text;
  }
  EXPECT_THROW(parse_quantity("64GB", Quantity::kBandwidth),
               errors::InvalidArgument);
  try {
    parse_quantity("16 gigs", Quantity::kBytes);
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("\"16 gigs\" has an unknown unit; "
                                         "expected a size, for example"),
              std::string::npos)
        << e.what();
  }
}

TEST(Units, WriteTimesAndSizes) {
  EXPECT_EQ(time_text(39790, "us"), "39.79 ms");
  EXPECT_EQ(time_text(-12.5, "us"), "-12.5 us");
  EXPECT_EQ(time_text(39.79, ""), "39.79");
  EXPECT_EQ(size_text(4096), "4 KiB");
  EXPECT_EQ(size_text(1e300), "1e+300 B");
}

}  // namespace
}  // namespace berth
