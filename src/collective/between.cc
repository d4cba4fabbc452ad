#include "collective/between.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "berth/errors.h"
#include "collective/packed_bucket.h"

namespace berth {

namespace {

using Algorithm = Sums (*)(PackedBucket&);

constexpr std::pair<const char*, Algorithm> kAlgorithms[] = {
    {"direct", &reduce_directly},
    {"ring", &reduce_in_a_ring},
    {"hierarchical", &reduce_in_pairs},
    {"one_device", &reduce_on_one_device},
    {"exchange", &reduce_by_exchange}};

// By messages: each taker hears of every other giver, or all go by one.
bool exchange_sends_less(const Demand& d) {
  const size_t exchange = d.takers * d.givers - d.both;
  const size_t one = d.givers - 1 + d.takers - (d.root_takes ? 1 : 0);
  return exchange <= one;
}

Demand demand_of(const PackedBucket& b) {
  Demand d{.bytes = b.bytes(),
           .givers = b.givers().size(),
           .takers = b.takers().size(),
           .root_takes = b.station(b.givers()[0]).wants,
           .ordered = b.ordered()};
  for (const int s : b.takers()) d.both += b.station(s).pieces.empty() ? 0 : 1;
  return d;
}

}  // namespace

std::string choose_algorithm(const std::string& asked, const Demand& demand) {
  const bool automatic = asked == "auto" || asked.empty();
  const bool known =
      std::any_of(std::begin(kAlgorithms), std::end(kAlgorithms),
                  [&](const auto& a) { return asked == a.first; });
  if (!automatic && !known) {
    throw errors::InvalidArgument(
        fmt::format("_AllReduce: algorithm \"{}\"; expected \"auto\", "
                    "\"direct\", \"ring\", \"hierarchical\", "
                    "\"one_device\" or \"exchange\"",
                    asked));
  }
  if (demand.bytes == 0 || demand.givers == 1) return "exchange";
  if (!automatic) return asked;
  if (demand.bytes < kSmallBytes) {
    return exchange_sends_less(demand) ? "exchange" : "one_device";
  }
  return demand.ordered || demand.givers == 2 ? "direct" : "ring";
}

void lower_between(Emit& emit, const Bucket& bucket, const Turn& turn) {
  PackedBucket packed(emit, bucket, turn);
  const std::string name =
      choose_algorithm(bucket.algorithm, demand_of(packed));
  for (const auto& [of, algorithm] : kAlgorithms) {
    if (name == of) packed.unpack(algorithm(packed));
  }
}

}  // namespace berth
