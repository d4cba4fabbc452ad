#include "rpc/succession.h"

#include <gtest/gtest.h>

namespace berth::rpc {
namespace {

const WhoAnswer kAbsent{}, kWaits{.there = true};
const WhoAnswer kForms{.there = true, .coordinates = true};
WhoAnswer runs(uint64_t generation) { return {true, true, true, generation}; }

TEST(Succession, TheFirstPlaceThatIsThereCoordinates) {
  EXPECT_EQ(choose_head({kAbsent, kAbsent, kWaits}, 0, false), 0u);
  EXPECT_EQ(choose_head({kAbsent, kAbsent, kWaits}, 1, false), 1u);
  // The one before will; it may not know yet.
  EXPECT_EQ(choose_head({kAbsent, kWaits, kAbsent}, 2, false), std::nullopt);
}

TEST(Succession, OneWhoseGenerationRunsIsFollowedByAll) {
  EXPECT_EQ(choose_head({kAbsent, kAbsent, runs(3)}, 0, false), 2u);
  // A coordinator that was stopped, and goes on.
  EXPECT_EQ(choose_head({kAbsent, runs(3), kWaits}, 0, true), 1u);
  EXPECT_EQ(choose_head({runs(2), kAbsent, runs(3)}, 1, false), 2u);
}

TEST(Succession, OfTwoThatFormTheFirstOneStays) {
  EXPECT_EQ(choose_head({kAbsent, kForms, kWaits}, 0, true), 0u);
  EXPECT_EQ(choose_head({kForms, kAbsent, kWaits}, 1, true), 0u);
  EXPECT_EQ(choose_head({kWaits, kAbsent, kForms}, 1, false), 2u);
}

TEST(Succession, AnswersThatAreNotUnderstoodComeFromTasksThatAreThere) {
  EXPECT_FALSE(parse_who("").there);
  for (const char* text : {"x", "not yet: of the coordinator", "\xff\x01",
                           "not yet: of the coordinator a b c"}) {
    const WhoAnswer a = parse_who(text);
    EXPECT_TRUE(a.there);
    EXPECT_FALSE(a.coordinates || a.running);
  }
  const WhoAnswer a = parse_who("not yet: of the coordinator 1 0 7");
  EXPECT_TRUE(a.coordinates && !a.running);
  EXPECT_EQ(a.generation, 7u);
}

}  // namespace
}  // namespace berth::rpc
