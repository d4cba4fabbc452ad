#include "keras/training/examples_seen.h"

#include <gtest/gtest.h>

#include "berth/errors.h"

namespace berth::keras {
namespace {

using Seen = TaskReport::Seen;

TEST(ExamplesSeen, AnEpochWhoseBatchesAreSharedIsSeenOnce) {
  ExamplesSeen seen;
  seen.add_step(0, {3, 3, 4});
  seen.add_step(1, {5, 5});  // a task was lost
  seen.add_step(2, {2, 0, 0, 1});
  seen.end_epoch();
  EXPECT_EQ(seen.epochs(), (std::vector<Seen>{{23, 0, 0}}));
}

TEST(ExamplesSeen, RepeatedAndMissingPlacesAreCounted) {
  ExamplesSeen seen;
  seen.add_step(0, {4, 4});
  seen.add_step(1, {4, 4});
  seen.add_step(1, {8});  // again: these eight twice
  seen.add_step(3, {8});  // without the third batch
  seen.end_epoch();
  seen.add_step(0, {8});  // and from the beginning again, three times
  seen.add_step(0, {8});
  seen.add_step(0, {8});
  seen.end_epoch();
  EXPECT_EQ(seen.epochs(), (std::vector<Seen>{{16, 8, 8}, {0, 8, 0}}));
}

TEST(ExamplesSeen, TheStateGoesOnElsewhere) {
  ExamplesSeen one, other;
  one.add_step(0, {4, 4});
  one.end_epoch();
  one.add_step(0, {4, 4});
  other.set_state(one.state());
  other.add_step(1, {8});
  other.end_epoch();
  EXPECT_EQ(other.epochs(), (std::vector<Seen>{{8, 0, 0}, {16, 0, 0}}));
  EXPECT_THROW(other.set_state({{}, "{\"rows\": 3}"}), errors::DataLoss);
  EXPECT_THROW(other.set_state({{}, "no JSON"}), errors::DataLoss);
}

}  // namespace
}  // namespace berth::keras
