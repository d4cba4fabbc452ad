// Budgets, streams and series: independent of the machine and the number of
// threads.

#include "planner/budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace berth {
namespace {

TEST(Budget, InMovesIsEightEqualStreamsWhateverTheThreads) {
  for (const int threads : {1, 3, 16}) {
    const Budget b = Budget::of_moves(1000, threads);
    EXPECT_TRUE(b.counts_moves());
    EXPECT_EQ(b.num_streams(), 8);
    EXPECT_EQ(b.moves_per_stream(), 125);
    EXPECT_DOUBLE_EQ(b.spent(0), 0);
    EXPECT_DOUBLE_EQ(b.spent(50), 0.4);
    EXPECT_GE(b.spent(125), 1);
  }
  EXPECT_EQ(Budget::of_moves(9, 1).moves_per_stream(), 2);  // rounded up
}

TEST(Budget, InSecondsHasAStreamPerThread) {
  const Budget b = Budget::of_seconds(1000, 3);
  EXPECT_FALSE(b.counts_moves());
  EXPECT_EQ(b.num_streams(), 3);
  EXPECT_LT(b.spent(int64_t{1} << 40), 0.1);  // moves cost nothing
  EXPECT_GE(Budget::of_seconds(0, 1).spent(0), 1);
}

TEST(Budget, PartsShareTheWholeAndWhatIsEnough) {
  const Budget whole = Budget::of_moves(800, 2);
  EXPECT_EQ(whole.part(0.25, 0.75).moves_per_stream(), 50);
  const Budget part = whole.part(0, 0.5);
  Budget copy = whole;
  EXPECT_FALSE(part.enough(7));
  copy.set_enough(7);
  EXPECT_TRUE(part.enough(7));
  EXPECT_FALSE(part.enough(7.5));
}

TEST(Budget, OfMovesAndSecondsEndsAtWhicheverIsFirst) {
  const Budget b = Budget::of_seconds(1000, 3).with_moves(50);
  EXPECT_FALSE(b.counts_moves());
  EXPECT_EQ(b.num_streams(), 3);
  EXPECT_EQ(b.moves_per_stream(), 50);
  EXPECT_DOUBLE_EQ(b.spent(20), 0.4);
  EXPECT_EQ(b.part(0.5, 1).moves_per_stream(), 25);
  EXPECT_NEAR(b.part(0, 0.1).seconds_left(), 1000, 10);
  EXPECT_NEAR(Budget::of_seconds(1000, 3).part(0, 0.1).seconds_left(), 100, 10);
  EXPECT_GE(Budget::of_seconds(0, 3).with_moves(50).spent(20), 1);
}

// The moves per stream of all searches, each spending what it may.
std::vector<int64_t> searches_of(const Budget& whole, int64_t first,
                                 int64_t most = 100) {
  SearchSeries series(whole, first, 1);
  std::vector<int64_t> moves;
  while (std::ssize(moves) < most && series.next(10)) {
    EXPECT_EQ(series.number(), std::ssize(moves));
    moves.push_back(series.budget().moves_per_stream());
    series.run([&](SearchStream& s) {
      EXPECT_EQ(s.moves(), 0);
      EXPECT_EQ(s.take(7), 7);
      EXPECT_EQ(s.take(int64_t{1} << 60), moves.back() - 7);
      EXPECT_GE(s.spent(), 1);
    });
  }
  const int64_t sum = std::accumulate(moves.begin(), moves.end(), int64_t{0});
  EXPECT_EQ(series.moves(), sum * whole.num_streams());
  return moves;
}

TEST(SearchSeries, OfTwiceTheMovesBeginsWithThatOfTheMoves) {
  for (const int64_t moves : {500, 501, 999, 4000, 12345}) {
    const Budget once = Budget::of_moves(moves, 2);
    const Budget twice = Budget::of_moves(2 * moves, 3);
    const std::vector<int64_t> a = searches_of(once, 1);
    std::vector<int64_t> b = searches_of(twice, 9);
    const auto sum = [](const std::vector<int64_t>& v) {
      return std::accumulate(v.begin(), v.end(), int64_t{0});
    };
    EXPECT_EQ(sum(a), once.moves_per_stream());
    EXPECT_EQ(sum(b), twice.moves_per_stream());
    b.pop_back();
    EXPECT_EQ(a, b) << moves;
  }
  EXPECT_EQ(searches_of(Budget::of_moves(80, 2), 1),
            (std::vector<int64_t>{10}));
}

TEST(SearchSeries, InSecondsDoublesUntilTimeIsUp) {
  const Budget whole = Budget::of_seconds(1000, 2);
  EXPECT_EQ(searches_of(whole, 10, 4), (std::vector<int64_t>{10, 10, 20, 40}));
  const Budget none = Budget::of_seconds(0, 2);
  EXPECT_EQ(searches_of(none, 10).size(), 1) << "always a first one";
}

TEST(SearchSeries, EndsWhenTheValueIsEnough) {
  Budget whole = Budget::of_seconds(1000, 2);
  SearchSeries series(whole, 10, 1);
  EXPECT_TRUE(series.next(10));
  EXPECT_TRUE(series.next(10));
  whole.set_enough(10);
  EXPECT_FALSE(series.next(10));
}

TEST(StreamRandom, GivesTheNumbersOfItsDefinition) {
  // xoshiro256** (Blackman, Vigna) on the state that splitmix64 produces.
  StreamRandom r(1, 0);
  const auto rotl = [](uint64_t v, int k) { return v << k | v >> (64 - k); };
  uint64_t x = 0x9E3779B97F4A7C15ULL + 1, s[4];
  for (uint64_t& word : s) {
    uint64_t z = (x += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    word = z ^ (z >> 31);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(r.next(), rotl(s[1] * 5, 7) * 9);
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3];
    s[2] ^= t, s[3] = rotl(s[3], 45);
  }
}

TEST(StreamRandom, StreamsAndSeedsDifferAndNumbersStayInRange) {
  EXPECT_NE(StreamRandom(1, 0).next(), StreamRandom(1, 1).next());
  EXPECT_NE(StreamRandom(1, 0).next(), StreamRandom(2, 0).next());
  StreamRandom r(5, 5);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) {
    ++seen[r.below(7)];
    const double u = r.uniform();
    EXPECT_GE(u, 0);
    EXPECT_LT(u, 1);
  }
  for (const int n : seen) EXPECT_NEAR(n, 1000, 150);
}

TEST(RunStreams, RunsEachOnceAndRethrowsTheLeastFailure) {
  std::vector<int> runs(8);
  run_streams(8, 3, [&](int s) { ++runs[static_cast<size_t>(s)]; });
  EXPECT_EQ(runs, std::vector<int>(8, 1));
  try {
    run_streams(8, 4, [](int s) {
      if (s >= 5) throw std::runtime_error(std::to_string(s));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "5");
  }
}

}  // namespace
}  // namespace berth
