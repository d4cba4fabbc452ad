// All-reduce between memories: what devices send each other.
//
// Part of lower_collectives(), which has added up already what is in one
// memory.

#ifndef BERTH_COLLECTIVE_BETWEEN_H_
#define BERTH_COLLECTIVE_BETWEEN_H_

#include "collective/emit.h"

namespace berth {

// Replaces the reductions of a bucket whose pieces and results are in more
// than one memory, by the algorithm that it names. Throws
// errors::InvalidArgument for one that there is not.
void lower_between(Emit& emit, const Bucket& bucket);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_BETWEEN_H_
