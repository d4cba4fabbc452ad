#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_elementwise(Kernels&) {}

}  // namespace berth::gpu
