// All-reduce without detours: direct, one_device and exchange. All add along
// the tree over slices, so the bits do not depend on which device has the
// pieces.

#include "collective/packed_bucket.h"

namespace berth {

Sums reduce_directly(PackedBucket& bucket) {
  const std::vector<Addend> pieces = bucket.pieces();
  const auto n = static_cast<int64_t>(bucket.givers().size());
  // All sends come first, so that no sum delays them.
  std::vector<std::vector<Addend>> sent(bucket.givers().size(), pieces);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t begin = bucket.elements() * k / n;
    const int64_t count = bucket.elements() * (k + 1) / n - begin;
    if (count == 0) sent[k].clear();
    for (Addend& p : sent[k]) {
      p.value = bucket.rows(p.value, begin, count, p.device);
    }
  }
  std::vector<ValueRef> parts;
  for (size_t k = 0; k < sent.size(); ++k) {
    if (sent[k].empty()) continue;
    const PackedBucket::AfterHops hops(bucket, 1);
    parts.push_back(bucket.total(sent[k], bucket.givers()[k]));
  }
  Sums sums(bucket.num_stations());
  for (const int s : bucket.takers()) {
    const PackedBucket::AfterHops hops(bucket, 2);
    sums[s] = bucket.concat(parts, s);
  }
  return sums;
}

Sums reduce_on_one_device(PackedBucket& bucket) {
  const int root =
      bucket.takers().size() == 1 ? bucket.takers()[0] : bucket.givers()[0];
  Sums sums(bucket.num_stations());
  ValueRef sum;
  {
    const PackedBucket::AfterHops hops(bucket, 1);
    sum = bucket.total(bucket.pieces(), root);
  }
  const PackedBucket::AfterHops hops(bucket, 2);
  for (const int s : bucket.takers()) sums[s] = bucket.concat({sum}, s);
  return sums;
}

Sums reduce_by_exchange(PackedBucket& bucket) {
  Sums sums(bucket.num_stations());
  for (const int s : bucket.takers()) {
    const PackedBucket::AfterHops hops(bucket, 1);
    sums[s] = bucket.total(bucket.pieces(), s);
  }
  return sums;
}

}  // namespace berth
