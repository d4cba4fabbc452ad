#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_norm(Kernels&) {}

}  // namespace berth::gpu
