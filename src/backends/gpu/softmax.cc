#include "backends/gpu/kernels.h"

namespace berth::gpu {

void add_softmax(Kernels&) {}

}  // namespace berth::gpu
