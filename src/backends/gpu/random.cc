#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_random(Kernels&) {}

}  // namespace berth::gpu
