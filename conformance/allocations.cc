#include "conformance/allocations.h"

#include "bench/count_allocations.h"

namespace berth::conformance {

long system_allocations() { return berth_bench::allocations(); }

}  // namespace berth::conformance
