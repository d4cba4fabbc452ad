// All-reduce in pairs: neighbours add, then the first devices of two pairs, and
// so on; the sum returns along the same route (HierarchicalCopyAllReduce).

#include "collective/packed_bucket.h"

namespace berth {

Sums reduce_in_pairs(PackedBucket& bucket) {
  const auto& givers = bucket.givers();
  const int n = static_cast<int>(givers.size());
  std::vector<ValueRef> sum;
  for (const int s : givers) sum.push_back(bucket.sum_of(s));
  int hops = 0, top = 1;
  for (; top < n; top *= 2) {
    const PackedBucket::AfterHops after(bucket, ++hops);
    for (int i = 0; i + top < n; i += 2 * top) {
      sum[i] = bucket.add(sum[i], sum[i + top], givers[i]);
    }
  }
  sum[0] = bucket.mean(sum[0], givers[0]);
  Sums sums(bucket.num_stations());
  // The first of a pair sends the sum to the second, which forwards it.
  for (int width = top / 2; width >= 1; width /= 2) {
    const PackedBucket::AfterHops after(bucket, ++hops);
    for (int i = 0; i + width < n; i += 2 * width) {
      sum[i + width] = bucket.bring(sum[i], givers[i + width]);
    }
  }
  for (int i = 0; i < n; ++i) sums[givers[i]] = sum[i];
  for (const int s : bucket.takers()) {
    if (sums[s].node < 0) sums[s] = bucket.bring(sum[0], s);
  }
  return sums;
}

}  // namespace berth
