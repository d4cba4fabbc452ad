#include "collective/device_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/environment.h"
#include "berth/errors.h"
#include "collective/packed_bucket.h"
#include "device/device_manager.h"
#include "op/kernel.h"

namespace berth {

namespace {

using Algorithm = Sums (*)(PackedBucket&);

constexpr std::pair<const char*, Algorithm> kAlgorithms[] = {
    {"direct", &reduce_directly},       {"ring", &reduce_in_a_ring},
    {"hierarchical", &reduce_in_pairs}, {"one_device", &reduce_on_one_device},
    {"exchange", &reduce_by_exchange},  {"nccl", &reduce_by_library}};

// By messages: each taker hears from every other giver, or from one device.
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
  std::vector<DeviceId> devices;
  for (const int s : b.givers()) devices.push_back(b.station(s).device);
  d.library = d.both == d.givers && d.both == d.takers &&
              share_library(devices, b.dtype());
  return d;
}

// The algorithm to use, with BERTH_COLLECTIVES taken into account.
std::string asked_for(const std::string& asked, const Demand& d) {
  const std::string policy =
      environment_choice("BERTH_COLLECTIVES", {"auto", "own", "nccl"});
  const bool automatic = asked == "auto" || asked.empty();
  const bool can = d.library && policy != "own";
  if (can && policy == "nccl") return "nccl";
  if (can && automatic && !d.ordered) return "nccl";
  return automatic || (asked == "nccl" && !can) ? "auto" : asked;
}

}  // namespace

bool share_library(const std::vector<DeviceId>& devices, DType dtype) {
  static const OpDef& op = op_named("_AllReduceStart");
  std::set<const KernelTable*> cards;
  std::set<int> peers;
  for (const DeviceId id : devices) {
    const Device* d = DeviceManager::get().find(id.name());
    if (d == nullptr || !d->kernels().supports(op, dtype)) return false;
    // Parts of one card share its kernels.
    if (!cards.insert(&d->kernels()).second) return false;
    peers.insert(d->memory().peers);
  }
  return cards.size() > 1 && peers.size() == 1;
}

std::string choose_algorithm(const std::string& asked, const Demand& demand) {
  const bool known =
      asked == "auto" || asked.empty() ||
      std::any_of(std::begin(kAlgorithms), std::end(kAlgorithms),
                  [&](const auto& a) { return asked == a.first; });
  if (!known) {
    throw errors::InvalidArgument(
        fmt::format("_AllReduce: algorithm \"{}\"; expected \"auto\", "
                    "\"nccl\", \"direct\", \"ring\", \"hierarchical\", "
                    "\"one_device\" or \"exchange\"",
                    asked));
  }
  if (demand.bytes == 0 || demand.givers == 1) return "exchange";
  const std::string wanted = asked_for(asked, demand);
  if (wanted != "auto") return wanted;
  if (demand.bytes < kSmallBytes) {
    return exchange_sends_less(demand) ? "exchange" : "one_device";
  }
  return demand.ordered || demand.givers == 2 ? "direct" : "ring";
}

void lower_device_allreduce(Emit& emit, const Bucket& bucket,
                            const Turn& turn) {
  PackedBucket packed(emit, bucket, turn);
  const std::string name =
      choose_algorithm(bucket.algorithm, demand_of(packed));
  for (const auto& [of, algorithm] : kAlgorithms) {
    if (name == of) packed.unpack(algorithm(packed));
  }
}

}  // namespace berth
