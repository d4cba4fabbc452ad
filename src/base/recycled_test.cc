#include "base/recycled.h"

#include <gtest/gtest.h>

#include <memory>

namespace berth {
namespace {

struct Held {
  std::shared_ptr<int> value;
};

TEST(Recycled, EndsTheValueAtOnceAndUsesTheMemoryAgain) {
  const auto number = std::make_shared<int>(7);
  Held* first = Recycled<Held>::take({number});
  EXPECT_EQ(number.use_count(), 2);
  Recycled<Held>::give_back(first);
  EXPECT_EQ(number.use_count(), 1);
  Held* second = Recycled<Held>::take({number});
  EXPECT_EQ(second, first);
  Held* third = Recycled<Held>::take({});
  EXPECT_NE(third, second);
  EXPECT_EQ(third->value, nullptr);
  Recycled<Held>::give_back(second);
  Recycled<Held>::give_back(third);
}

}  // namespace
}  // namespace berth
