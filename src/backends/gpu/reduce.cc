#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_reduce(Kernels&) {}

}  // namespace berth::gpu
