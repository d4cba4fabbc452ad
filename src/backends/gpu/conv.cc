#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_conv(Kernels&) {}

}  // namespace berth::gpu
