#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_sort(Kernels&) {}

}  // namespace berth::gpu
