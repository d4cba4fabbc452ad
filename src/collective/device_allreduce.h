// All-reduce between memories: what devices send to each other.
//
// Part of lower_collectives(), which has already added what is in one memory.
// The values of a bucket become one list of elements per device; the algorithm
// that the bucket names adds the lists; views of the sum are the results. With
// N devices that have pieces and want results, of B bytes each:
//
//   algorithm     how                               one device sends
//   direct        each adds its N-th of all lists   2 B (N - 1) / N
//   ring          parts go round, then the sums     2 B (N - 1) / N
//   hierarchical  pairs, pairs of pairs; back       at most B log2(N) (*)
//   one_device    all lists to one, the sum back    B; the one B (N - 1)
//   exchange      each adds all lists               B (N - 1)
//   nccl          a library of the devices          2 B (N - 1) / N
//   (*) 2 B (N - 1) in total, as one_device.
//
// "nccl" needs devices that are distinct cards of one library and that all give
// and take; otherwise it counts as "auto". "auto" is nccl where that is
// possible and no order is required (BERTH_COLLECTIVES=own: never; nccl: every
// bucket requests "nccl"). Without it, below kSmallBytes "auto" is exchange or
// one_device, whichever sends fewer messages; above, direct with two devices or
// if bits depend on the order, else ring.

#ifndef BERTH_COLLECTIVE_DEVICE_ALLREDUCE_H_
#define BERTH_COLLECTIVE_DEVICE_ALLREDUCE_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "collective/emit.h"

namespace berth {

// For smaller buckets the number of messages matters, not bytes.
inline constexpr int64_t kSmallBytes = 64 << 10;

// The inputs of the choice of an algorithm.
struct Demand {
  int64_t bytes = 0;  // of the bucket
  size_t givers = 0;  // memories that have pieces
  size_t takers = 0;  // memories that want the result
  size_t both = 0;
  bool root_takes = true;  // whether the first giver wants it
  bool ordered = false;    // bits depend on the order
  bool library = false;    // their own library can do it (share_library)
};

// Whether the devices with these full names are distinct cards, at least two,
// of a library that adds `dtype` between them.
bool share_library(const std::vector<DeviceId>& devices, DType dtype);

// Returns which of the six algorithms lowers a bucket. Throws
// errors::InvalidArgument for a name that is neither one of them nor "auto",
// and for an invalid BERTH_COLLECTIVES.
std::string choose_algorithm(const std::string& asked, const Demand& demand);

// The turn of a bucket among those that may overlap with each other and with
// the computation of gradients.
struct Turn {
  int number = 0;
  // Per bucket, from this one on in the order in which their pieces appear: by
  // device, the node that makes its last piece. The work of a device on
  // received values is placed after these nodes, one bucket later per hop, so
  // that copies overlap with the computation of later gradients.
  std::vector<std::unordered_map<DeviceId, int32_t>> last_pieces;
};

// Replaces the reductions of a bucket whose pieces and results are in more than
// one memory, by the algorithm that it names. Throws errors::InvalidArgument
// for one that does not exist.
void lower_device_allreduce(Emit& emit, const Bucket& bucket, const Turn& turn);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_DEVICE_ALLREDUCE_H_
