#include "exec/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace berth {
namespace {

bool overlap(const ArenaBuffer& a, const ArenaBuffer& b) {
  const bool in_time = a.begin < b.end && b.begin < a.end;
  const bool in_space =
      a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return in_time && in_space;
}

TEST(MemoryPlan, BuffersThatNeverMeetShareTheirBytes) {
  std::vector<ArenaBuffer> b{{100, 0, 2}, {100, 2, 4}, {100, 4, 6}};
  EXPECT_EQ(plan_arena(b), 128u);
  EXPECT_EQ(liveness_bound(b), 100u);
}

TEST(MemoryPlan, BuffersAliveTogetherAreApart) {
  std::vector<ArenaBuffer> b{{64, 0, 3}, {64, 1, 3}, {64, 2, 3}};
  EXPECT_EQ(plan_arena(b), 192u);
}

TEST(MemoryPlan, RandomLivesNeverOverlapAndStayNearTheBound) {
  std::mt19937 rng(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaBuffer> b;
    for (int i = 0; i < 60; ++i) {
      const int begin = static_cast<int>(rng() % 100);
      b.push_back({(rng() % 200 + 1) * 64, begin,
                   begin + 1 + static_cast<int>(rng() % 20)});
    }
    const size_t total = plan_arena(b);
    for (size_t i = 0; i < b.size(); ++i) {
      EXPECT_EQ(b[i].offset % kArenaAlignment, 0u);
      EXPECT_LE(b[i].offset + b[i].bytes, total);
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(b[i], b[j]));
    }
    const size_t bound = liveness_bound(b);
    EXPECT_GE(total, bound);
    EXPECT_LE(static_cast<double>(total), 1.25 * static_cast<double>(bound));
  }
}

// The rule of the header, said plainly: the largest first, each in the smallest
// gap with room among all that it meets, at the lowest offset.
size_t place_plainly(std::vector<ArenaBuffer>& buffers) {
  std::vector<ArenaBuffer*> order, placed;
  for (ArenaBuffer& b : buffers) order.push_back(&b);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return aligned(a->bytes) > aligned(b->bytes);
  });
  size_t total = 0;
  for (ArenaBuffer* b : order) {
    const size_t bytes = aligned(b->bytes);
    if (bytes == 0) continue;
    std::vector<bool> taken(total / kArenaAlignment + 1, false);
    size_t end = 0;
    for (const ArenaBuffer* p : placed) {
      const bool after = p->begin >= b->end_for(p->stream);
      const bool before = b->begin >= p->end_for(b->stream);
      if (after || before) continue;
      const size_t last = p->offset + aligned(p->bytes);
      for (size_t at = p->offset; at < last; at += kArenaAlignment) {
        taken[at / kArenaAlignment] = true;
      }
      end = std::max(end, last);
    }
    size_t best = end, best_gap = SIZE_MAX;
    for (size_t at = 0; at < end; at += kArenaAlignment) {
      const size_t from = at;
      while (!taken[at / kArenaAlignment]) at += kArenaAlignment;
      const size_t gap = at - from;
      if (gap < bytes || gap >= best_gap) continue;
      best = from;
      best_gap = gap;
    }
    b->offset = best;
    total = std::max(total, best + bytes);
    placed.push_back(b);
  }
  return total;
}

TEST(MemoryPlan, OffsetsAreThoseOfTheRule) {
  std::mt19937 rng(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaBuffer> b;
    const int sizes = 1 + round % 40, steps = 20 + round % 70;
    for (int i = 0; i < 80; ++i) {
      const int begin = 5 + static_cast<int>(rng() % steps);
      b.push_back({rng() % sizes * 50, begin,
                   begin + 1 + static_cast<int>(rng() % steps)});
    }
    std::vector<ArenaBuffer> expected = b;
    ASSERT_EQ(plan_arena(b), place_plainly(expected));
    for (size_t i = 0; i < b.size(); ++i) {
      ASSERT_EQ(b[i].offset, expected[i].offset) << round << " " << i;
    }
  }
}

TEST(MemoryPlan, AStreamWritesWhereItKnowsOthersAreDone) {
  // What stream 0 writes at steps 0 and 4; stream 1 learns at step 6 that the
  // first is free, stream 0 at step 3.
  std::vector<ArenaBuffer> b{{64, 0, 3}, {64, 4, 5}, {64, 5, 6}};
  b[0].ends = {3, 6};
  b[1].ends = {5, 5};
  b[2].ends = {6, 6};
  b[2].stream = 1;
  EXPECT_EQ(plan_arena(b), 128u);
  EXPECT_EQ(b[1].offset, b[0].offset);
  EXPECT_NE(b[2].offset, b[0].offset);
}

TEST(MemoryPlan, OffsetsOfSeveralStreamsAreThoseOfTheRule) {
  std::mt19937 rng(13);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaBuffer> b;
    const size_t streams = 2 + rng() % 2;
    for (int i = 0; i < 60; ++i) {
      ArenaBuffer& a = b.emplace_back(ArenaBuffer{rng() % 9 * 64});
      a.begin = static_cast<int>(rng() % 90);
      a.stream = rng() % streams;
      for (size_t s = 0; s < streams; ++s) {
        a.ends.push_back(a.begin + 1 + static_cast<int>(rng() % 40));
      }
      a.end = *std::min_element(a.ends.begin(), a.ends.end());
    }
    std::vector<ArenaBuffer> expected = b;
    ASSERT_EQ(plan_arena(b), place_plainly(expected));
    for (size_t i = 0; i < b.size(); ++i) {
      ASSERT_EQ(b[i].offset, expected[i].offset) << round << " " << i;
    }
  }
}

// Two streams; step 2 (stream 1) waits for step 0 (stream 0).
Schedule two_streams() {
  Schedule s;
  s.streams = {{"/device:GPU:0", false}, {"/device:GPU:1", false}};
  s.steps = {{0, 0, {}}, {1, 0, {}}, {2, 1, {0}}, {3, 0, {}}, {4, 0, {2}}};
  return s;
}

TEST(HappensBefore, FollowsStreamsAndWaits) {
  const Schedule s = two_streams();
  const HappensBefore hb(s);
  EXPECT_TRUE(hb.before(0, 1));
  EXPECT_TRUE(hb.before(0, 2));
  EXPECT_FALSE(hb.before(1, 2));  // other stream, no wait
  EXPECT_FALSE(hb.before(2, 3));
  EXPECT_TRUE(hb.before(2, 4));
  EXPECT_FALSE(hb.before(4, 2));
}

TEST(HappensBefore, MemoryReadElsewhereIsFreeOnlyAfterTheWait) {
  const Schedule s = two_streams();
  const HappensBefore hb(s);
  // Step 2 on stream 1 reads memory that stream 0 writes.
  EXPECT_EQ(hb.free_from(2, 0), 4);
  // Its own stream knows at once.
  EXPECT_EQ(hb.free_from(0, 0), 1);
  // Without a later wait: never in this run.
  Schedule open = s;
  open.steps[4].waits.clear();
  const HappensBefore hb2(open);
  EXPECT_EQ(hb2.free_from(2, 0), 5);
}

}  // namespace
}  // namespace berth
