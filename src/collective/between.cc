#include "collective/between.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "collective/packed_bucket.h"

namespace berth {

namespace {

using Algorithm = Sums (*)(PackedBucket&);

// Messages of exchange and one_device: what either sends alone.
bool exchange_sends_less(const PackedBucket& b) {
  const auto& givers = b.givers();
  const auto& takers = b.takers();
  const bool root_takes = b.station(givers[0]).wants;
  size_t exchange = 0;
  for (const int t : takers) {
    exchange += givers.size() - (b.station(t).pieces.empty() ? 0 : 1);
  }
  const size_t one = givers.size() - 1 + takers.size() - (root_takes ? 1 : 0);
  return exchange <= one;
}

Algorithm small_algorithm(const PackedBucket& b) {
  return exchange_sends_less(b) ? &reduce_by_exchange : &reduce_on_one_device;
}

Algorithm algorithm_for(const PackedBucket& b, const std::string& name) {
  if (b.elements() == 0 || b.givers().size() == 1) return &reduce_by_exchange;
  if (name == "auto" || name.empty()) {
    if (b.bytes() < kSmallBytes) return small_algorithm(b);
    return b.ordered() || b.givers().size() == 2 ? &reduce_directly
                                                 : &reduce_in_a_ring;
  }
  if (name == "direct") return &reduce_directly;
  if (name == "ring") return &reduce_in_a_ring;
  if (name == "hierarchical") return &reduce_in_pairs;
  if (name == "one_device") return &reduce_on_one_device;
  throw errors::InvalidArgument(
      fmt::format("_AllReduce: algorithm \"{}\"; expected \"auto\", "
                  "\"direct\", \"ring\", \"hierarchical\" or \"one_device\"",
                  name));
}

}  // namespace

void lower_between(Emit& emit, const Bucket& bucket, const Turn& turn) {
  PackedBucket packed(emit, bucket, turn);
  const Algorithm algorithm = algorithm_for(packed, bucket.algorithm);
  packed.unpack(algorithm(packed));
}

}  // namespace berth
