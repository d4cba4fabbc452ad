// take, skip, repeat and filter.

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "data/testing.h"

namespace berth::data {
namespace {

std::vector<Dataset> both(int64_t n) {
  return {Dataset::range(n), unindexed(Dataset::range(n))};
}

TEST(Take, KeepsTheFirst) {
  for (const Dataset& d : both(5)) {
    EXPECT_EQ(numbers(d.take(3)), counting(3));
    EXPECT_EQ(numbers(d.take(0)), Numbers{});
    EXPECT_EQ(numbers(d.take(9)), counting(5));
    EXPECT_EQ(numbers(d.take(-1)), counting(5));
    EXPECT_EQ(d.take(3).cardinality(), 3);
    EXPECT_EQ(d.take(9).cardinality(), 5);
    EXPECT_EQ(d.repeat().take(9).cardinality(), 9);
  }
}

TEST(Skip, DropsTheFirst) {
  for (const Dataset& d : both(5)) {
    EXPECT_EQ(numbers(d.skip(3)), (Numbers{3, 4}));
    EXPECT_EQ(numbers(d.skip(0)), counting(5));
    EXPECT_EQ(numbers(d.skip(5)), Numbers{});
    EXPECT_EQ(numbers(d.skip(-1)), Numbers{});
    EXPECT_EQ(numbers(d.repeat().skip(7).take(3)), (Numbers{2, 3, 4}));
    EXPECT_EQ(d.skip(3).cardinality(), 2);
    EXPECT_EQ(d.skip(9).cardinality(), 0);
    EXPECT_EQ(d.repeat().skip(9).cardinality(), kInfinite);
  }
}

TEST(Repeat, StartsAgain) {
  for (const Dataset& d : both(2)) {
    EXPECT_EQ(numbers(d.repeat(3)), (Numbers{0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(numbers(d.repeat(0)), Numbers{});
    EXPECT_EQ(numbers(d.repeat().take(5)), (Numbers{0, 1, 0, 1, 0}));
    EXPECT_EQ(numbers(d.repeat().batch(3).take(2)),
              (Numbers{0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(d.repeat(3).cardinality(), 6);
    EXPECT_EQ(d.repeat().cardinality(), kInfinite);
    EXPECT_EQ(d.repeat(INT64_MAX).cardinality(), kInfinite);
  }
}

TEST(Repeat, OfNothingEnds) {
  for (const Dataset& d : both(0)) {
    EXPECT_EQ(numbers(d.repeat()), Numbers{});
    EXPECT_EQ(d.repeat().cardinality(), 0);
  }
}

TEST(Filter, KeepsWhatThePredicateSays) {
  const auto even = [](const Tensors& e) {
    return e[0].item<int64_t>() % 2 == 0;
  };
  EXPECT_EQ(numbers(Dataset::range(7).filter(even)), (Numbers{0, 2, 4, 6}));
  EXPECT_EQ(Dataset::range(7).filter(even).cardinality(), kUnknown);
  EXPECT_EQ(numbers(Dataset::range(9).filter(even).batch(2)),
            (Numbers{0, 2, 4, 6, 8}));
}

TEST(Chain, OutlivesTheHandlesItWasMadeFrom) {
  auto it = [] {
    return Dataset::range(10)
        .shuffle(10, {.seed = 1})
        .batch(4)
        .prefetch(2)
        .make_iterator();
  }();
  size_t n = 0;
  while (auto batch = it.next()) n += (*batch)[0].to_vector<int64_t>().size();
  EXPECT_EQ(n, 10u);
}

}  // namespace
}  // namespace berth::data
