// All-reduce by the devices' own library, such as NCCL: no node adds or copies.
// Work of a device between the two nodes overlaps with it.

#include <atomic>

#include "collective/packed_bucket.h"

namespace berth {

namespace {

// Sums of different programs must not mix.
int64_t next_group() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

Sums reduce_by_library(PackedBucket& bucket) {
  const std::vector<int>& ranks = bucket.givers();
  const int64_t group = next_group();
  const auto attrs = [&](size_t rank) {
    return AttrsRef({{"group", group},
                     {"rank", static_cast<int64_t>(rank)},
                     {"ranks", static_cast<int64_t>(ranks.size())},
                     {"what", bucket.name()},
                     {"timeout_seconds", bucket.timeout_seconds()}});
  };
  std::vector<ValueRef> started;
  for (size_t r = 0; r < ranks.size(); ++r) {
    started.push_back(bucket.node("_AllReduceStart", bucket.sum_of(ranks[r]),
                                  attrs(r), ranks[r], "start"));
  }
  Sums sums(bucket.num_stations());
  for (size_t r = 0; r < ranks.size(); ++r) {
    const PackedBucket::AfterHops hops(bucket, 1);
    const ValueRef end =
        bucket.node("_AllReduceEnd", started[r], attrs(r), ranks[r], "end");
    for (const ValueRef other : started) bucket.order(other, end);
    sums[ranks[r]] = bucket.mean(end, ranks[r]);
  }
  return sums;
}

}  // namespace berth
