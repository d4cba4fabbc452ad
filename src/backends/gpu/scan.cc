#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_scan(Kernels&) {}

}  // namespace berth::gpu
