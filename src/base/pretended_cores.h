// Cores that a process counts with though the machine may not have them.
//
// Results are those of a machine with these cores, speeds are not: no thread
// is bound and none spins. BERTH_CORES=0-15 pretends from the start; tests do
// it before devices exist. Thread-safe.

#ifndef BERTH_BASE_PRETENDED_CORES_H_
#define BERTH_BASE_PRETENDED_CORES_H_

#include "base/core_set.h"

namespace berth {

// Null: cores are real. Throws InvalidArgument when BERTH_CORES makes no sense.
const CoreSet* pretended_cores();

// CoreSet::allowed() is `cores` from now on.
void pretend_cores(CoreSet cores);

}  // namespace berth

#endif  // BERTH_BASE_PRETENDED_CORES_H_
