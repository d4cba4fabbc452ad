#include "base/percent_text.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(PercentText, HasNoExponents) {
  EXPECT_EQ(percent_text(0.0042), "0.4 %");
  EXPECT_EQ(percent_text(-0.031), "-3.1 %");
  EXPECT_EQ(percent_text(0.0996), "10 %");
  EXPECT_EQ(percent_text(0.124), "12 %");
  EXPECT_EQ(percent_text(2.6), "260 %");
  EXPECT_EQ(percent_text(-0.5), "-50 %");
  EXPECT_EQ(percent_text(31), "more than 1000 %");
}

}  // namespace
}  // namespace berth
