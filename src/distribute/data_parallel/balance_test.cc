// Shares by times, against closed forms.

#include "distribute/data_parallel/balance.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

#include "berth/errors.h"

namespace berth::distribute {
namespace {

// The shortest longest time over all shares that give every replica a slice.
double brute_force(const std::vector<ReplicaSpeed>& speeds, int slices) {
  std::vector<int> shares(speeds.size(), 0);
  double best = 1e300;
  std::function<void(size_t, int)> place = [&](size_t r, int left) {
    if (r + 1 == speeds.size()) {
      if (left < 1 || left > speeds[r].most_slices) return;
      shares[r] = left;
      best = std::min(best, longest_us(speeds, shares));
      return;
    }
    for (int s = 1; s <= std::min(left, speeds[r].most_slices); ++s) {
      shares[r] = s;
      place(r + 1, left - s);
    }
  };
  place(0, slices);
  return best;
}

TEST(Balance, IsTheBestThatThereIs) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> fixed(0, 30), slice(0.5, 20);
  for (int round = 0; round < 300; ++round) {
    std::vector<ReplicaSpeed> speeds(1 + random() % 4);
    for (ReplicaSpeed& s : speeds) {
      s = {fixed(random), slice(random), 5 + static_cast<int>(random() % 20)};
    }
    const int slices = 4 + static_cast<int>(random() % 9);
    int room = 0;
    for (const ReplicaSpeed& s : speeds) room += s.most_slices;
    if (room < slices) continue;
    const std::vector<int> shares = balanced_shares(speeds, slices);
    EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), 0), slices);
    for (size_t r = 0; r < speeds.size(); ++r) {
      EXPECT_GE(shares[r], 1);
      EXPECT_LE(shares[r], speeds[r].most_slices);
    }
    EXPECT_DOUBLE_EQ(longest_us(speeds, shares), brute_force(speeds, slices));
  }
}

TEST(Balance, OneAndThreeCoresShareOneToThree) {
  EXPECT_EQ(balanced_shares({{0, 3}, {0, 1}}, 32), (std::vector{8, 24}));
}

TEST(Balance, FewerSlicesThanReplicasGoToTheFastest) {
  EXPECT_EQ(balanced_shares({{0, 9}, {0, 1}, {0, 5}}, 2),
            (std::vector{0, 2, 0}));
}

TEST(Balance, MemoryLimitsHold) {
  EXPECT_EQ(balanced_shares({{0, 1, 4}, {0, 10}}, 16), (std::vector{4, 12}));
  EXPECT_THROW(balanced_shares({{0, 1, 4}, {0, 1, 3}}, 8),
               errors::ResourceExhausted);
}

// Replicas with true speeds that the Balancer does not know.
struct Truth {
  std::vector<ReplicaSpeed> speeds;
  double rest_us = 20;
  bool knows_fixed = false;
  double fixed_us = 10;
  std::optional<std::vector<int>> step(Balancer& b) const {
    std::vector<double> us;
    for (size_t r = 0; r < speeds.size(); ++r) {
      us.push_back(speeds[r].fixed_us + speeds[r].slice_us * b.shares()[r]);
    }
    const std::vector<double> fixed(us.size(), knows_fixed ? fixed_us : 0);
    return b.sample(us, fixed, longest_us(speeds, b.shares()) + rest_us);
  }
};

TEST(Balancer, FindsTheBestSharesWithinTwoMoves) {
  const Truth truth{{{10, 30}, {10, 10}}};
  Balancer b({16, 16});
  for (int i = 0; i < 20; ++i) truth.step(b);
  const double best =
      longest_us(truth.speeds, balanced_shares(truth.speeds, 32));
  EXPECT_LE(longest_us(truth.speeds, b.shares()), best * 1.03);
  EXPECT_LE(b.moves(), 2);
  EXPECT_NE(b.str().find("shares 16:16 -> 8:24: step 510 us -> "),
            std::string::npos)
      << b.str();
}

TEST(Balancer, NeedsOneMoveWhenItKnowsWhatIsFixed) {
  const Truth truth{{{10, 30}, {10, 10}}, 20, true};
  Balancer b({16, 16});
  for (int i = 0; i < 20; ++i) truth.step(b);
  EXPECT_EQ(b.shares(), (std::vector{8, 24}));
  EXPECT_EQ(b.moves(), 1);
}

TEST(Balancer, KeepsWithinTheMemoryOfReplicas) {
  const Truth truth{{{0, 30}, {0, 10}}};
  Balancer b({16, 16});
  b.limit({32, 20});
  for (int i = 0; i < 20; ++i) truth.step(b);
  EXPECT_EQ(b.shares(), (std::vector{12, 20}));
}

TEST(Balancer, LeavesSmallGainsAlone) {
  const Truth truth{{{0, 10}, {0, 9.8}}};
  Balancer b({16, 16});
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(truth.step(b));
  EXPECT_EQ(b.str(), "");
}

TEST(Balancer, FollowsADeviceThatBecomesSlower) {
  Truth truth{{{0, 10}, {0, 10}}};
  Balancer b({16, 16});
  for (int i = 0; i < 10; ++i) truth.step(b);
  EXPECT_EQ(b.shares(), (std::vector{16, 16}));
  truth.speeds[0].slice_us = 30;
  for (int i = 0; i < 10; ++i) truth.step(b);
  EXPECT_EQ(b.shares(), (std::vector{8, 24}));
}

TEST(Balancer, TakesAMoveBackThatWasNone) {
  Balancer b({16, 16});
  ASSERT_TRUE(b.sample({300, 100}, {0, 0}, 320));
  EXPECT_NE(b.shares(), (std::vector{16, 16}));
  // The step got longer, whatever the replicas report.
  EXPECT_EQ(b.sample({200, 180}, {0, 0}, 400), (std::vector{16, 16}));
  EXPECT_FALSE(b.sample({300, 100}, {0, 0}, 320));  // once is enough
}

TEST(Balancer, SettlesForTheBestThatItSaw) {
  BalanceOptions options;
  options.most_moves = 3;
  Balancer b({16, 16}, {}, options);
  ASSERT_TRUE(b.sample({300, 100}, {0, 0}, 320));
  const std::vector<int> best = b.shares();
  ASSERT_TRUE(b.sample({300, 100}, {0, 0}, 300));
  ASSERT_TRUE(b.sample({300, 100}, {0, 0}, 305.5));  // a bit worse
  EXPECT_EQ(b.sample({300, 100}, {0, 0}, 311), best);
  EXPECT_FALSE(b.sample({300, 100}, {0, 0}, 300));
}

TEST(Balancer, NoiseEndsInABoundedNumberOfMoves) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> us(50, 500);
  Balancer b({8, 8, 8, 8});
  for (int i = 0; i < 400; ++i) {
    b.sample({us(random), us(random), us(random), us(random)}, {0, 0, 0, 0},
             us(random));
  }
  EXPECT_LE(b.moves(), 8 + 2 * 400 / 50);
  EXPECT_EQ(std::accumulate(b.shares().begin(), b.shares().end(), 0), 32);
}

}  // namespace
}  // namespace berth::distribute
