#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_plain(Kernels&) {}

}  // namespace berth::gpu
