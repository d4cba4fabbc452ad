#include "device/segments.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace berth {
namespace {

constexpr size_t kPage = Segments::kGranularity;

// Addresses that nobody touches; counts what is out.
class FakeSource final : public MemorySource {
 public:
  std::byte* reserve(size_t bytes) override {
    if (refuse) return nullptr;
    // A gap: segments that touch must not merge.
    std::byte* data = next_;
    next_ += bytes + kPage;
    out[data] = bytes;
    return data;
  }
  void release(std::byte* data, size_t bytes) override {
    const auto it = out.find(data);
    ASSERT_TRUE(it != out.end());
    EXPECT_EQ(it->second, bytes);
    out.erase(it);
  }
  bool host_addressable() const override { return false; }

  bool refuse = false;
  std::map<std::byte*, size_t> out;

 private:
  std::byte* next_ = reinterpret_cast<std::byte*>(uintptr_t{1} << 40);
};

TEST(Segments, FollowAModelThroughRandomUse) {
  std::mt19937 random(7);
  FakeSource source;
  Segments segments(&source);
  std::map<std::byte*, Chunk*> live;  // by address: the model
  size_t live_bytes = 0, segment_bytes = 0;
  for (int round = 0; round < 20000; ++round) {
    if (live.empty() || random() % 5 < 3) {
      const size_t bytes = (random() % 40 + 1) * kPage;
      Chunk* chunk = segments.take(bytes);
      if (chunk == nullptr) {
        const size_t more = std::max(bytes, 64 * kPage);
        ASSERT_TRUE(segments.grow(more));
        segment_bytes += more;
        chunk = segments.take(bytes);
      }
      ASSERT_TRUE(chunk);
      ASSERT_EQ(chunk->bytes, bytes);
      // Inside one segment, apart from both neighbours.
      auto segment = source.out.upper_bound(chunk->data);
      ASSERT_TRUE(segment != source.out.begin());
      --segment;
      ASSERT_LE(chunk->data + bytes, segment->first + segment->second);
      const auto after = live.lower_bound(chunk->data);
      if (after != live.end()) {
        ASSERT_LE(chunk->data + bytes, after->first);
      }
      if (after != live.begin()) {
        const Chunk* before = std::prev(after)->second;
        ASSERT_LE(before->data + before->bytes, chunk->data);
      }
      live[chunk->data] = chunk;
      live_bytes += bytes;
    } else {
      auto it = live.begin();
      std::advance(it, random() % live.size());
      live_bytes -= it->second->bytes;
      segments.give_back(it->second);
      live.erase(it);
    }
    ASSERT_EQ(segments.free_bytes(), segment_bytes - live_bytes);
    if (round % 1000 == 999) segment_bytes -= segments.release_free();
  }
  for (const auto& [data, chunk] : live) segments.give_back(chunk);
  // Only segments in one piece again can go.
  EXPECT_EQ(segments.release_free(), segment_bytes);
  EXPECT_TRUE(source.out.empty());
}

TEST(Segments, GiveTheSmallestPieceThatFits) {
  FakeSource source;
  Segments segments(&source);
  ASSERT_TRUE(segments.grow(8 * kPage));
  ASSERT_TRUE(segments.grow(3 * kPage));
  Chunk* chunk = segments.take(2 * kPage);
  EXPECT_EQ(chunk->data, source.out.rbegin()->first);
  EXPECT_EQ(segments.take(9 * kPage), nullptr);
  segments.give_back(chunk);
}

TEST(Segments, ARefusedSegmentChangesNothing) {
  FakeSource source;
  Segments segments(&source);
  source.refuse = true;
  EXPECT_FALSE(segments.grow(kPage));
  EXPECT_EQ(segments.take(kPage), nullptr);
  EXPECT_EQ(segments.free_bytes(), 0u);
}

}  // namespace
}  // namespace berth
