// balanced_cut against every cut.

#include "distribute/pipeline/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace berth::distribute {
namespace {

struct Drawn {
  UnitCosts units;
  std::vector<StageOn> stages;
};

Drawn drawn(std::mt19937& random, bool limits) {
  const auto at_most = [&](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n + 1));
  };
  Drawn d;
  const size_t stages = 1 + static_cast<size_t>(at_most(3));
  const size_t units = stages + static_cast<size_t>(at_most(5));
  const size_t devices = 1 + static_cast<size_t>(at_most(1));
  for (size_t k = 0; k < devices; ++k) {
    auto& us = d.units.us.emplace_back();
    for (size_t u = 0; u < units; ++u) us.push_back(at_most(9));
  }
  for (size_t u = 0; u < units; ++u) {
    d.units.kept_bytes.push_back(at_most(5));
    d.units.passing_bytes.push_back(at_most(3));
    d.units.sent_bytes.push_back(at_most(4));
  }
  for (size_t s = 0; s < stages; ++s) {
    d.stages.push_back(
        {at_most(static_cast<int>(devices) - 1), limits ? 5 + at_most(25) : 0,
         1 + at_most(2), at_most(1) == 1,
         [](int64_t bytes) { return 0.5 + static_cast<double>(bytes); }});
  }
  return d;
}

// Bytes beyond limits, and the slowest stage.
std::pair<int64_t, double> worth(const Drawn& d,
                                 const std::vector<int32_t>& begin) {
  std::pair<int64_t, double> all = {0, 0};
  for (size_t s = 0; s < begin.size(); ++s) {
    const StageOn& on = d.stages[s];
    const auto end = s + 1 < begin.size()
                         ? begin[s + 1]
                         : static_cast<int32_t>(d.units.kept_bytes.size());
    int64_t bytes = 0;
    double us = 0;
    for (int32_t u = begin[s]; u < end; ++u) {
      us += d.units.us[on.device][u];
      bytes += d.units.kept_bytes[u] + d.units.passing_bytes[u] * on.in_flight;
    }
    const double in = s > 0 ? on.receives(d.units.sent_bytes[begin[s] - 1]) : 0;
    us = on.overlaps ? std::max(us, in) : us + in;
    if (on.memory_limit > 0) {
      all.first += std::max<int64_t>(0, bytes - on.memory_limit);
    }
    all.second = std::max(all.second, us);
  }
  return all;
}

// Calls `see` with every cut.
template <class See>
void every_cut(int32_t units, size_t stages, std::vector<int32_t> begin,
               const See& see) {
  if (begin.size() == stages) return see(begin);
  const int32_t left = static_cast<int32_t>(stages - begin.size());
  for (int32_t b = begin.back() + 1; b + left <= units; ++b) {
    std::vector<int32_t> more = begin;
    more.push_back(b);
    every_cut(units, stages, std::move(more), see);
  }
}

TEST(BalancedCut, NoOtherCutIsBetter) {
  std::mt19937 random(7);
  int exceed = 0;
  for (int k = 0; k < 3000; ++k) {
    const Drawn d = drawn(random, k % 2 == 1);
    const PipelineCut cut = balanced_cut(d.units, d.stages);
    std::pair<int64_t, double> best = {std::numeric_limits<int64_t>::max(), 0};
    every_cut(
        static_cast<int32_t>(d.units.kept_bytes.size()), d.stages.size(), {0},
        [&](const auto& begin) { best = std::min(best, worth(d, begin)); });
    const auto got = worth(d, cut.begin);
    ASSERT_EQ(got.first, best.first) << k;
    ASSERT_DOUBLE_EQ(got.second, best.second) << k;
    ASSERT_EQ(cut.missing_bytes, best.first) << k;
    ASSERT_DOUBLE_EQ(*std::max_element(cut.us.begin(), cut.us.end()),
                     best.second);
    exceed += best.first > 0;
  }
  EXPECT_GT(exceed, 50);
}

}  // namespace
}  // namespace berth::distribute
