// All-reduce in a ring: each device sends to the next one alone. The list is
// cut into as many parts as there are devices; each part goes round once to be
// added up, and once more, whole, to those that want it.

#include <algorithm>

#include "collective/packed_bucket.h"

namespace berth {

namespace {

// A part that has gone round: its sum, and where in the ring that is.
struct Part {
  ValueRef sum;
  int at = 0;
};

// Adds the part on its way from station `first` of the ring to the last.
Part add_round(PackedBucket& bucket, const std::vector<ValueRef>& own,
               int first, int64_t begin, int64_t count) {
  const auto& ring = bucket.givers();
  const int n = static_cast<int>(ring.size());
  const auto piece = [&](int at) {
    return bucket.rows(own[at], begin, count, bucket.station(ring[at]).device);
  };
  Part part{piece(first), first};
  for (int hop = 1; hop < n; ++hop) {
    part.at = (first + hop) % n;
    const ValueRef mine = piece(part.at);
    const PackedBucket::AfterHops hops(bucket, hop);
    part.sum = bucket.add(part.sum, mine, ring[part.at]);
    if (hop + 1 == n) part.sum = bucket.mean(part.sum, ring[part.at]);
  }
  return part;
}

// Who wants the sum, from `at` on round the ring, then those outside of it.
std::vector<int> takers_from(const PackedBucket& bucket, int at) {
  const auto& ring = bucket.givers();
  std::vector<int> order;
  for (size_t k = 0; k < ring.size(); ++k) {
    const int s = ring[(static_cast<size_t>(at) + k) % ring.size()];
    if (bucket.station(s).wants) order.push_back(s);
  }
  for (const int s : bucket.takers()) {
    if (bucket.station(s).pieces.empty()) order.push_back(s);
  }
  return order;
}

}  // namespace

Sums reduce_in_a_ring(PackedBucket& bucket) {
  const auto& ring = bucket.givers();
  const int n = static_cast<int>(ring.size());
  std::vector<ValueRef> own;
  for (const int s : ring) own.push_back(bucket.sum_of(s));
  // By station, the parts in order.
  std::vector<std::vector<ValueRef>> parts(bucket.num_stations());
  for (int k = 0; k < n; ++k) {
    const int64_t begin = bucket.elements() * k / n;
    const int64_t count = bucket.elements() * (k + 1) / n - begin;
    if (count == 0) continue;
    const Part part = add_round(bucket, own, k, begin, count);
    ValueRef v = part.sum;
    int hops = n - 1;
    for (const int s : takers_from(bucket, part.at)) {
      if (s != ring[part.at]) {
        const PackedBucket::AfterHops after(bucket, ++hops);
        v = bucket.bring(v, s);
      }
      parts[s].push_back(v);
    }
  }
  Sums sums(bucket.num_stations());
  for (const int s : bucket.takers()) {
    sums[s] = bucket.concat(parts[s], s);
  }
  return sums;
}

}  // namespace berth
