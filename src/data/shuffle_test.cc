#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "berth/errors.h"
#include "berth/ops/random.h"
#include "data/testing.h"

namespace berth::data {
namespace {

Numbers sorted(Numbers v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST(Shuffle, HandsOutEveryElementOnce) {
  for (int64_t buffer : {1, 2, 7, 99, 100, 1000}) {
    for (bool indexed : {true, false}) {
      Dataset d = Dataset::range(100);
      if (!indexed) d = unindexed(d);
      EXPECT_EQ(sorted(numbers(d.shuffle(buffer))), counting(100)) << buffer;
    }
  }
}

TEST(Shuffle, FollowsFromTheSeed) {
  const auto make = [](uint64_t seed) {
    return numbers(Dataset::range(1000).shuffle(1000, {.seed = seed}));
  };
  EXPECT_EQ(make(5), make(5));
  EXPECT_NE(make(5), make(6));
  EXPECT_NE(make(5), counting(1000));
  EXPECT_NE(numbers(Dataset::range(1000).shuffle(1000)),
            numbers(Dataset::range(1000).shuffle(1000)));
}

TEST(Shuffle, FollowsFromTheSeedOfTheProcess) {
  const auto two = [](int64_t seed) {
    random::set_seed(seed);
    const Numbers first = numbers(Dataset::range(100).shuffle(100));
    return std::pair(first, numbers(Dataset::range(100).shuffle(100)));
  };
  const auto a = two(3);
  EXPECT_EQ(a, two(3));
  EXPECT_NE(a, two(4));
  EXPECT_NE(a.first, a.second);
}

TEST(Shuffle, OrdersRowNumbersAndElementsAlike) {
  const Dataset rows = Dataset::range(50);
  for (int64_t buffer : {1, 8, 50, 60}) {
    const auto chain = [&](const Dataset& d) {
      return numbers(
          d.shuffle(buffer, {.seed = 3}).repeat(3).skip(7).take(100).batch(8));
    };
    EXPECT_EQ(chain(rows), chain(unindexed(rows))) << buffer;
  }
}

TEST(Shuffle, GivesEachIterationItsOwnReproducibleOrder) {
  const auto three = [](bool reshuffle) {
    const Dataset d = Dataset::range(100).shuffle(
        100, {.seed = 1, .reshuffle_each_iteration = reshuffle});
    return std::vector<Numbers>{numbers(d), numbers(d), numbers(d)};
  };
  const auto on = three(true);
  EXPECT_NE(on[0], on[1]);
  EXPECT_NE(on[1], on[2]);
  EXPECT_EQ(on, three(true));
  const auto off = three(false);
  EXPECT_EQ(off[0], off[1]);
  EXPECT_EQ(off[0], off[2]);
  EXPECT_EQ(off[0], on[0]);
  // repeat starts the same iterations.
  const auto repeated =
      numbers(Dataset::range(100).shuffle(100, {.seed = 1}).repeat(2));
  Numbers both = on[0];
  both.insert(both.end(), on[1].begin(), on[1].end());
  EXPECT_EQ(repeated, both);
}

// An element cannot come before all but buffer - 1 of its predecessors.
TEST(Shuffle, MovesNoElementForwardByTheBufferSizeOrMore) {
  const int64_t buffer = 10;
  const Numbers order =
      numbers(Dataset::range(1000).shuffle(buffer, {.seed = 2}));
  for (size_t at = 0; at < order.size(); ++at) {
    EXPECT_LT(order[at] - static_cast<int64_t>(at), buffer);
  }
  EXPECT_EQ(numbers(Dataset::range(20).shuffle(1)), counting(20));
}

// 6 orders of 3 elements, 6000 draws: each has 1000 within 5 standard
// deviations (29); a fixed seed, so the outcome never varies.
TEST(Shuffle, MakesAllOrdersEquallyLikely) {
  const Dataset d = Dataset::range(3).shuffle(3, {.seed = 0});
  std::map<Numbers, int> seen;
  for (int i = 0; i < 6000; ++i) ++seen[numbers(d)];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 145);
}

TEST(Shuffle, DoesNotAdvanceWhenOnlyTheSpecIsAsked) {
  const auto make = [](bool ask) {
    const Dataset d = unindexed(Dataset::range(100).shuffle(100, {.seed = 4}));
    if (ask) {
      EXPECT_EQ(d.element_spec()[0].str(), "int64[]");
    }
    return numbers(d);
  };
  EXPECT_EQ(make(true), make(false));
}

TEST(Shuffle, RefusesAnEmptyBuffer) {
  const std::string text =
      message_of<errors::InvalidArgument>([] { Dataset::range(3).shuffle(0); });
  EXPECT_TRUE(has(text, "shuffle (")) << text;
  EXPECT_TRUE(has(text, "buffer_size is 0")) << text;
}

}  // namespace
}  // namespace berth::data
