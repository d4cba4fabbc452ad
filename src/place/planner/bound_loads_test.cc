#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "place/planner/models.h"
#include "place/planner/random_loads_testing.h"

namespace berth {
namespace {

using testing::Payment;

// Bounds against the best of all placements, told upper bounds that are too
// high, or none.
void expect_valid(Payment payment, int count, double* mean_gap) {
  double gaps = 0;
  int feasible = 0;
  for (int seed = 0; seed < count; ++seed) {
    const PlanProblem p =
        testing::random_load_problem(static_cast<uint64_t>(seed), payment);
    const double best = testing::best_load(p);
    if (std::isinf(best)) continue;
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double upper : {1.3 * best, infinity}) {
      const Bound b = bound_loads(p, Budget::of_moves(100000, 1), upper);
      ASSERT_LE(b.value, best * (1 + 1e-9))
          << "seed " << seed << " by " << b.how;
      if (std::isinf(upper) && best > 0) {
        gaps += best > 0 ? 1 - b.value / best : 0;
        ++feasible;
      }
    }
  }
  ASSERT_GT(feasible, count / 2);
  *mean_gap = gaps / feasible;
  ::testing::Test::RecordProperty("mean_gap_percent",
                                  std::to_string(100 * *mean_gap));
  std::printf("mean gap %.2f %% of %d problems\n", 100 * *mean_gap, feasible);
}

TEST(BoundLoads, NeverExceedsTheBestPlacementByTheTouchRule) {
  double gap = 0;
  expect_valid(Payment::kTouch, 1000, &gap);
  EXPECT_LT(gap, 0.15);
}

TEST(BoundLoads, NeverExceedsTheBestPlacementByLinks) {
  double gap = 0;
  expect_valid(Payment::kLinks, 1000, &gap);
  EXPECT_LT(gap, 0.15);
}

}  // namespace
}  // namespace berth
