// All-reduce between memories: what devices send each other.
//
// Part of lower_collectives(), which has added up already what is in one
// memory. The values of a bucket become one list of elements per device; the
// algorithm that the bucket names adds the lists; views of the sum are the
// results. With N devices that have pieces and want results, of B bytes each:
//
//   algorithm     how                               one device sends
//   direct        each adds its N-th of all lists   2 B (N - 1) / N
//   ring          parts go round, then the sums     2 B (N - 1) / N
//   hierarchical  pairs, pairs of pairs; back       at most B log2(N) (*)
//   one_device    all lists to one, the sum back    B; the one B (N - 1)
//   exchange      each adds all lists               B (N - 1)
//   nccl          a library of the devices'         2 B (N - 1) / N
//   (*) all together 2 B (N - 1), as one_device.
//
// "nccl" needs devices that are distinct cards of one library, all of which
// give and take; else it counts as "auto". "auto" is nccl where that can be and
// no order is asked for (BERTH_COLLECTIVES=own: never; nccl: then "nccl" is
// what every bucket asks for). Without it, "auto" is exchange or one_device,
// whichever sends fewer messages, below kSmallBytes, else direct with two
// devices or an order that bits rely on, else ring.

#ifndef BERTH_COLLECTIVE_BETWEEN_H_
#define BERTH_COLLECTIVE_BETWEEN_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "collective/emit.h"

namespace berth {

// Buckets of fewer bytes are about messages, not bytes.
inline constexpr int64_t kSmallBytes = 64 << 10;

// What the choice of an algorithm looks at.
struct Demand {
  int64_t bytes = 0;  // of the bucket
  size_t givers = 0;  // memories that have pieces
  size_t takers = 0;  // memories that want the result
  size_t both = 0;
  bool root_takes = true;  // the first giver wants it
  bool ordered = false;    // bits rely on an order
  bool library = false;    // their own can do it (share_library)
};

// True when the devices of these full names are distinct cards, at least two,
// of a library that adds `dtype` between them.
bool share_library(const std::vector<DeviceId>& devices, DType dtype);

// Returns which of the six a bucket is lowered by. Throws
// errors::InvalidArgument for a name that is none of them nor "auto", and for
// a BERTH_COLLECTIVES that is not understood.
std::string choose_algorithm(const std::string& asked, const Demand& demand);

// When a bucket has its turn among those that may overlap with each other and
// with the computation of gradients.
struct Turn {
  int number = 0;
  // Per bucket, from this one on in the order in which their pieces appear: by
  // device, the node that makes its last piece. What a device does with values
  // that others sent it stands behind these, one bucket later per hop, so that
  // copies overlap with the computation of later gradients.
  std::vector<std::unordered_map<DeviceId, int32_t>> last_pieces;
};

// Replaces the reductions of a bucket whose pieces and results are in more
// than one memory, by the algorithm that it names. Throws
// errors::InvalidArgument for one that does not exist.
void lower_between(Emit& emit, const Bucket& bucket, const Turn& turn);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_BETWEEN_H_
