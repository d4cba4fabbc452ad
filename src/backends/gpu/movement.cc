#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_movement(Kernels&) {}

}  // namespace berth::gpu
