#include "place/planner/simplex.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "place/planner/budget.h"

namespace berth {
namespace {

using Row = std::vector<std::pair<int32_t, double>>;

TEST(RowLp, StandsAtTheBoundsWithoutRows) {
  RowLp lp(std::vector<double>{1, -2}, std::vector<double>{-1, -3},
           std::vector<double>{4, 5});
  ASSERT_TRUE(lp.solve(10));
  EXPECT_DOUBLE_EQ(lp.value(), 4 + 6);
  EXPECT_EQ(lp.x(), (std::vector<double>{4, -3}));
}

TEST(RowLp, SolvesAKnownProgramme) {
  // max 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18: 36 at (2, 6).
  RowLp lp(std::vector<double>{3, 5}, std::vector<double>{0, 0},
           std::vector<double>{100, 100});
  lp.add_row(Row{{0, 1}}, 4);
  lp.add_row(Row{{1, 2}}, 12);
  lp.add_row(Row{{0, 3}, {1, 2}}, 18);
  ASSERT_TRUE(lp.solve(100));
  EXPECT_NEAR(lp.value(), 36, 1e-9);
  EXPECT_NEAR(lp.x()[0], 2, 1e-9);
  EXPECT_NEAR(lp.x()[1], 6, 1e-9);
  lp.set_bounds(1, 0, 3);  // then x = 4, y = 3
  ASSERT_TRUE(lp.solve(100));
  EXPECT_NEAR(lp.value(), 27, 1e-9);
}

TEST(RowLp, SaysWhenNothingSatisfiesTheRows) {
  RowLp lp(std::vector<double>{1}, std::vector<double>{1},
           std::vector<double>{2});
  lp.add_row(Row{{0, 1}}, 0.5);
  EXPECT_FALSE(lp.solve(100));
}

// With two variables the optimum is at an intersection of two lines.
double best_corner(const std::vector<double>& c,
                   const std::vector<std::vector<double>>& lines) {
  double best = -1e300;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto& a = lines[i];
      const auto& b = lines[j];
      const double det = a[0] * b[1] - a[1] * b[0];
      if (std::abs(det) < 1e-9) continue;
      const double x = (a[2] * b[1] - a[1] * b[2]) / det;
      const double y = (a[0] * b[2] - a[2] * b[0]) / det;
      bool inside = true;
      for (const auto& l : lines) {
        inside &= l[0] * x + l[1] * y <= l[2] + 1e-7;
      }
      if (inside) best = std::max(best, c[0] * x + c[1] * y);
    }
  }
  return best;
}

TEST(RowLp, FindsTheBestCornerWhileRowsCome) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    StreamRandom r(seed, 3);
    const auto number = [&] { return r.uniform() * 4 - 2; };
    const std::vector<double> c = {number(), number()};
    const std::vector<double> low = {-1, -2}, high = {3, 2};
    RowLp lp(c, low, high);
    std::vector<std::vector<double>> lines = {
        {1, 0, 3}, {-1, 0, 1}, {0, 1, 2}, {0, -1, 2}};
    for (int k = 0; k < 12; ++k) {
      // The origin satisfies all of them.
      lines.push_back({number(), number(), r.uniform() * 2});
      lp.add_row(Row{{0, lines.back()[0]}, {1, lines.back()[1]}},
                 lines.back()[2]);
      ASSERT_TRUE(lp.solve(1000)) << "seed " << seed;
      ASSERT_NEAR(lp.value(), best_corner(c, lines), 1e-6) << "seed " << seed;
    }
  }
}

TEST(RowLp, DroppingLooseRowsKeepsTheOptimum) {
  RowLp lp(std::vector<double>{1, 1}, std::vector<double>{0, 0},
           std::vector<double>{9, 9});
  lp.add_row(Row{{0, 1}, {1, 1}}, 17);  // loose in the end
  lp.add_row(Row{{0, 1}, {1, 2}}, 6);
  lp.add_row(Row{{0, 2}, {1, 1}}, 6);
  ASSERT_TRUE(lp.solve(100));
  lp.drop_loose_rows(2);
  EXPECT_EQ(lp.num_rows(), 2U);
  lp.add_row(Row{{0, 1}}, 1);
  ASSERT_TRUE(lp.solve(100));
  EXPECT_NEAR(lp.value(), 3.5, 1e-9);  // at (1, 2.5)
}

}  // namespace
}  // namespace berth
