// Placement "fit": a step that does not fit a device computes values again
// instead of keeping them.
//
// Acts when a function is compiled, after the strategy's rewrite and before
// placement. It compiles on trial what it chooses, so that the memory plan, not
// an estimate, says that the step fits. One thread per graph.

#ifndef BERTH_FUNCTION_FIT_MEMORY_H_
#define BERTH_FUNCTION_FIT_MEMORY_H_

#include "function/trial_compile.h"
#include "graph/graph.h"
#include "place/place.h"

namespace berth {

// Adds second copies of ops to `graph` until its step fits the memory limits of
// its devices beside what is in use there; reports what that costs. A step that
// fits stays as it is; so does one that cannot fit, with a warning.
void fit_memory(Graph& graph, const PlaceOptions& devices,
                const TrialOptions& options);

}  // namespace berth

#endif  // BERTH_FUNCTION_FIT_MEMORY_H_
