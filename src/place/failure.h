// Errors of place(), in words.

#ifndef BERTH_PLACE_FAILURE_H_
#define BERTH_PLACE_FAILURE_H_

#include "place/constraint_sets.h"

namespace berth {

// Throws PlaceNoKernel when kernels are missing, else PlaceInvalid: node, op,
// source line, the request, what is possible, and one suggested change.
[[noreturn]] void throw_conflict(ConstraintSets& sets, int32_t element,
                                 const PlaceConflict& conflict);

}  // namespace berth

#endif  // BERTH_PLACE_FAILURE_H_
