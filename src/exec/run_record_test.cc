#include "exec/run_record.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(RunRecord, SamplesTheFirstWarmRunsAndThenRarely) {
  int early = 0, late = 0;
  for (int64_t run = 1; run <= 10; ++run) early += is_sampled(run);
  for (int64_t run = 11; run <= 3072; ++run) late += is_sampled(run);
  EXPECT_EQ(early, 3);
  EXPECT_FALSE(is_sampled(1));
  EXPECT_EQ(late, 16 + 2);
}

TEST(RunRecord, TheMedianIsThatOfTheLastSamples) {
  RunRecord r;
  EXPECT_EQ(r.median_step_us(), -1);
  for (double us : {5.0, 1.0, 100.0}) r.add_sample(us, {});
  EXPECT_EQ(r.median_step_us(), 5);
  for (size_t i = 0; i < RunRecord::kKeptSteps; ++i) r.add_sample(7, {});
  EXPECT_EQ(r.median_step_us(), 7);
  EXPECT_EQ(r.samples, 34);
}

TEST(RunRecord, TypicalTimesAreThoseOfTheMedianSample) {
  RunRecord r;
  r.steps.resize(2);
  EXPECT_EQ(r.typical_us(0), -1);
  r.add_sample(10, {4, 5});
  r.add_sample(500, {300, 9});  // somebody else had the core
  r.add_sample(8, {7, -1});
  EXPECT_EQ(r.median_step_us(), 10);
  EXPECT_EQ(r.typical_us(0), 4);
  EXPECT_EQ(r.typical_us(1), 5);
  // All that is kept goes, but the last of these.
  for (int i = 0; i < 40; ++i) r.add_sample(100 + i, {1.0f * i, 0});
  EXPECT_EQ(r.median_step_us(), 124);
  EXPECT_EQ(r.typical_us(0), 24);
}

TEST(RunRecord, StepsThatWereNotTimedHaveNoMean) {
  RunRecord r;
  r.steps = {{2, 9.0}, {0, 0}};
  EXPECT_EQ(r.mean_us(0), 4.5);
  EXPECT_EQ(r.mean_us(1), -1);
}

}  // namespace
}  // namespace berth
