#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_matmul(Kernels&) {}

}  // namespace berth::gpu
